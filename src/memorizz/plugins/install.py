"""Installing the plugins of coding agents, and uninstalling them."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

from memorizz import config
from memorizz.plugins.clients import CLIENTS, ClientFault, run
from memorizz.plugins.marketplace import GRAPH, TYPED, Record, build, contents


class Outcome(NamedTuple):
    """What was done. ``commands`` were run when ``done``, and else are for a person to run.

    ``problems`` are what a client's program said against being uninstalled from.
    """

    client: str
    marketplace: Path
    plugins: list[str]
    commands: list[list[str]]
    done: bool
    problems: list[str]

    def lines(self) -> list[str]:
        """The commands as a person types them."""
        return [shlex.join(command) for command in self.commands]


def install(
    client: str, *, typed: bool, remote_url: str | None, token_env: str, remember: bool | None = None
) -> Outcome:
    """Build the marketplace and let the client install from it; doing so again changes nothing.

    With ``remote_url`` the plugin of the memory graph asks that server instead of starting one. ``typed`` also
    installs the plugin of the typed memory. ``remember`` keeps that server in the file of settings or, when false,
    takes out what is there; without it the file stays as it is.

    Raises:
        ConfigurationError: Something else is in the place of the marketplace.
        ClientFault: The client's program failed; the marketplace is there.
        OSError: The marketplace cannot be written.
    """
    directory = _marketplace()
    record = Record.read(directory)
    before = record.clients.get(client, [])
    plugins = [GRAPH, *([TYPED] if typed or TYPED in before else [])]
    wanted = contents(remote_url, token_env)
    build(directory, wanted, record)
    known = CLIENTS[client]
    commands = known.installing(directory, plugins)
    program = shutil.which(known.program)
    if program is not None:
        if before:
            # A client keeps a copy of what it installed: only a fresh installation brings what has changed. It may
            # have been uninstalled by hand meanwhile.
            _tried(program, known.removing(before))
        for command in commands:
            run(program, command)
    if remember is not None:
        config.save_remote(remote_url if remember else None, token_env)
    remembered = record.remembered if remember is None else remember
    Record([*wanted], {**record.clients, client: plugins}, remembered).write(directory)
    return Outcome(client, directory, plugins, commands, program is not None, [])


def uninstall(client: str) -> Outcome:
    """Let the client remove what was installed, and delete the marketplace when no client uses it any more.

    Raises:
        ConfigurationError: The record of what is installed cannot be read.
        OSError: A file cannot be deleted.
    """
    directory = _marketplace()
    record = Record.read(directory)
    plugins = record.clients.get(client, [])
    known = CLIENTS[client]
    commands = known.removing(plugins) if plugins else []
    program = shutil.which(known.program)
    # What somebody has removed by hand already must not keep the rest from being removed.
    problems = _tried(program, commands) if program is not None else []
    rest = {name: each for name, each in record.clients.items() if name != client}
    if rest:
        record._replace(clients=rest).write(directory)
    else:
        if record.remembered:
            config.save_remote(None, "")
        record.erase(directory)
    return Outcome(client, directory, plugins, commands, program is not None or not commands, problems)


def _marketplace() -> Path:
    return config.home_directory() / "plugin-marketplace"


def _tried(program: str, commands: list[list[str]]) -> list[str]:
    """Run each command, and return why those failed that did."""
    problems = []
    for command in commands:
        try:
            run(program, command)
        except ClientFault as error:
            problems.append(str(error))
    return problems
