"""Backends on other machines from the command line: named by flags and the environment, secrets never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.memorizz.cli.conftest import Run
from tests.memorizz.support import DATA
from tests.support import postgres


def test_a_database_is_connected_and_remembered_without_its_address(run: Run, tmp_path: Path) -> None:
    variables = {"HARBOR_URL": postgres.url()}
    schema = postgres.fresh_schema()
    done = run("connect", "postgres", "--uri-env", "HARBOR_URL", "--schema", schema, **variables)
    assert done.returncode == 0
    assert f"/{schema}, remembered in" in done.stdout
    kept = (tmp_path / "home" / ".memorizz" / ".env").read_text()
    assert kept == f'MEMORIZZ_BACKEND="postgres"\nMEMORIZZ_POSTGRES_SCHEMA="{schema}"\n'
    from_now_on = {"MEMORIZZ_POSTGRES_URL": postgres.url()}
    archive = DATA / "agent_coordinator.memorizz.json"
    assert json.loads(run("memory", "import", archive, "--apply", **from_now_on).stdout)["imported"] == 52
    assert run("memory", "export", "out.memorizz.json", **from_now_on).returncode == 0
    assert json.loads(run("memory", "verify", "out.memorizz.json").stdout)["records"] == 52


@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        (("connect", "postgres"), {}, "the backend postgres needs the variable MEMORIZZ_POSTGRES_URL"),
        (("connect", "postgres", "--uri-env", "NONE"), {}, "needs the variable NONE"),
        (("connect", "postgres", "--path", "x"), {"MEMORIZZ_POSTGRES_URL": "postgresql://h/d"}, "has no --path"),
        (("connect", "sqlite", "--schema", "x"), {}, "the backend sqlite has no --schema"),
        (("connect", "--schema", "x"), {}, "need a BACKEND"),
        (("memory", "timeline", "--backend", "postgres"), {}, "needs the variable MEMORIZZ_POSTGRES_URL"),
    ],
)
def test_a_setting_that_is_missing_or_foreign_is_named(
    run: Run, arguments: tuple[str, ...], variables: dict[str, str], message: str
) -> None:
    done = run(*arguments, **variables)
    assert done.returncode == 2
    assert message in done.stderr


def test_no_message_shows_a_password(run: Run) -> None:
    variables = {"MEMORIZZ_POSTGRES_URL": "postgresql://me:secret@127.0.0.1:9/harbor?connect_timeout=2"}
    for command in (("connect", "postgres"), ("memory", "export", "x.json", "--backend", "postgres")):
        done = run(*command, **variables)
        assert done.returncode in (1, 2)
        assert "secret" not in done.stdout + done.stderr
    assert run("connect", MEMORIZZ_BACKEND="postgres", **variables).stdout.startswith(
        "postgres at postgresql://127.0.0.1:9/"
    )
