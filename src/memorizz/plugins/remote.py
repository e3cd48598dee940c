"""A hosted memory: archives over Streamable HTTP, without any local store."""

from __future__ import annotations

import ipaddress
import json
import logging
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from memorizz.config import PLUGIN_REMOTE_URL, PLUGIN_TOKEN_ENV, PluginSettings
from memorizz.errors import ConfigurationError, MemorizzError

_SECONDS: Final = 60
_EXPORT: Final = "memorizz_export_memories"
_IMPORT: Final = "memorizz_import_memories"
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Nothing that a line of settings or a client's configuration reads as more than a letter.
_URL: Final = re.compile(r"[!#%&()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+")
_STATUSES: Final = {
    401: "the token is not one of its own",
    403: "the token does not allow that",
    404: "there is no memory server at this path",
    413: "the archive is larger than it takes; move it with `memorizz memory` on the server's own machine",
}


class RemoteRefused(MemorizzError):
    """The server refused, and changed nothing."""


class RemoteFault(MemorizzError):
    """The server did not answer with a result."""

    exit_code = 1


class Remote(NamedTuple):
    """A server, and what is shown to it."""

    url: str
    token: str

    @classmethod
    def of(cls, settings: PluginSettings) -> Remote | None:
        """The server that the settings name, or ``None`` when the memory is a local one.

        Raises:
            ConfigurationError: They name one that must not be used, or no token for it.
        """
        if settings.remote_url is None:
            return None
        url = checked_url(settings.remote_url, PLUGIN_REMOTE_URL)
        name = checked_name(settings.token_env, PLUGIN_TOKEN_ENV)
        if settings.token is None:
            raise ConfigurationError(
                f"the hosted memory at {url} needs a token in the variable {name}, which is not set"
            )
        if _TOKEN.fullmatch(settings.token) is None:
            raise ConfigurationError(f"{name} holds no token: it has spaces, line breaks or letters beyond ASCII")
        return cls(url, settings.token)

    def export(self, memory_id: str) -> dict[str, Any]:
        """The archive of a namespace, as the server made it.

        Raises:
            RemoteRefused: The server said why not.
            RemoteFault: It cannot be reached, or did not answer with an archive.
            ConfigurationError: The package that speaks to it is missing.
        """
        archive = self._call(_EXPORT, {"memory_id": memory_id}).get("archive")
        if not isinstance(archive, dict):
            raise RemoteFault(f"{self.url} answered without an archive")
        return archive

    def restore(self, archive: Mapping[str, Any], *, dry_run: bool, **options: Any) -> dict[str, Any]:
        """The report of an import; ``options`` are those of the tool, ``None`` for what is left out.

        Raises:
            RemoteRefused: The server said why not.
            RemoteFault: It cannot be reached, or did not answer with a report.
            ConfigurationError: The package that speaks to it is missing.
        """
        given = {name: value for name, value in options.items() if value is not None}
        try:
            report = self._call(_IMPORT, {"archive": dict(archive), "dry_run": dry_run, **given})
            if not isinstance(report.get("ok"), bool):
                raise RemoteFault(f"{self.url} answered without a report")
        except RemoteFault as error:
            if dry_run:
                raise
            raise RemoteFault(f"{error}; preview the import again to see whether it was written") from None
        return report

    def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            # Only a hosted memory needs them, and they take longer to load than everything else.
            import anyio
            import httpx2
            from mcp import MCPError
        except ImportError:
            raise ConfigurationError(
                "a hosted memory needs a package that is not installed: pip install 'agent-memory[remote]'"
            ) from None
        statuses: list[int] = []
        # What it logs is in the error.
        logging.getLogger("mcp").setLevel(logging.CRITICAL)
        failure: MemorizzError | None = None
        failed, answer = False, ""
        try:
            failed, answer = anyio.run(_called, self, tool, arguments, statuses)
        except* (MCPError, httpx2.HTTPError, OSError) as group:
            failure = _failure(self.url, _first(group), statuses)
        if failure is not None:
            # Raised in the block above it would be in a group itself.
            raise failure
        if failed:
            raise RemoteRefused(f"{self.url} refused: {answer}")
        try:
            result = json.loads(answer)
        except ValueError:
            result = None
        if not isinstance(result, dict):
            raise RemoteFault(f"{self.url} did not answer {tool} with an object")
        return result


def checked_url(url: str, origin: str) -> str:
    """``url``, if a token may be sent there: over https, or to this machine.

    Raises:
        ConfigurationError: It may not; ``origin`` is where the address comes from.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(f"{origin}: {url!r:.200} is no address: {error}") from None
    if not host or parts.username is not None or parts.fragment or _URL.fullmatch(url) is None:
        raise ConfigurationError(
            f"{origin}: the address of a hosted memory is like https://memory.example.com/mcp, without a name, a "
            f"password or a fragment (got {_without_password(url)!r:.200})"
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(host)):
        raise ConfigurationError(
            f"{origin}: the address of a hosted memory begins with https://, or with http:// on this machine only "
            f"(got {url!r:.200})"
        )
    return url


def checked_name(name: str, origin: str) -> str:
    """``name``, if an environment variable may be called so.

    Raises:
        ConfigurationError: It may not; mostly it is the token itself, so the message does not show it.
    """
    if _NAME.fullmatch(name) is None:
        raise ConfigurationError(f"{origin}: give the name of the variable that holds the token, not the token")
    return name


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _without_password(url: str) -> str:
    return re.sub(r"//.*@", "//…@", url)


async def _called(remote: Remote, tool: str, arguments: dict[str, Any], statuses: list[int]) -> tuple[bool, str]:
    """Whether the call failed, and the text of its answer. ``statuses`` gets that of each HTTP answer."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def note(response: httpx2.Response) -> None:
        if response.request.method == "POST":
            statuses.append(response.status_code)

    async with httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {remote.token}"}, timeout=_SECONDS, event_hooks={"response": [note]}
    ) as http:
        transport = streamable_http_client(remote.url, http_client=http)
        async with Client(transport, read_timeout_seconds=_SECONDS) as client:
            result = await client.call_tool(tool, arguments)
    if result.structured_content is not None and not result.is_error:
        content = result.structured_content
        # Servers with an output schema wrap what a tool returns.
        return False, json.dumps(content["result"] if set(content) == {"result"} else content)
    return bool(result.is_error), "".join(part.text for part in result.content if part.type == "text")


def _first(error: BaseException) -> BaseException:
    """The error inside of the groups that the client's tasks make of it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _failure(url: str, error: BaseException, statuses: list[int]) -> MemorizzError:
    status = statuses[-1] if statuses else 0
    if status >= 300:
        said = _STATUSES.get(status, "it answered with an error")
        kind = RemoteRefused if status < 500 else RemoteFault
        return kind(f"{url}: {said} (HTTP {status})")
    return RemoteFault(f"{url} cannot be asked: {error or type(error).__name__}")
