"""What the Oracle provider does about its schema: what it makes, when, and what it says when it may not."""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import oracledb
import pytest

from memorizz import ConfigurationError, MemoryArchive, MemoryType, OracleConfig, OracleProvider
from memorizz.errors import InvalidRecord, MemoryArchiveError, ProviderFault, ReadOnlyProvider, RecordExists
from memorizz.providers import oracle_driver
from memorizz.providers.oracle_schema import EXTRAS, definitions
from memorizz.providers.registry import open_provider as open_by_kind
from tests.memorizz.support import archive
from tests.support.oracle import Database, ora, schema
from tests.support.oracle_backend import open_provider

KB = MemoryType.KNOWLEDGE_BASE
FACT = {"content": "High water is at 06:40.", "memory_id": "harbor"}
ALTERED = re.compile(r"ALTER TABLE (\w+) ADD \(archive_extras CLOB CHECK \(archive_extras IS JSON\)\)")


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """A schema that nobody has used."""
    return Database(tmp_path / "db")


@pytest.fixture
def native(tmp_path: Path) -> Database:
    """A schema whose tables another program made: they have native columns only."""
    made = Database(tmp_path / "native")
    extras = f", {EXTRAS} CLOB CHECK ({EXTRAS} IS JSON)"
    schema(made, [statement.replace(extras, "") for _, statement in definitions("")])
    return made


@pytest.fixture
def provider(database: Database) -> Iterator[OracleProvider]:
    with open_provider(database) as opened:
        yield opened


def altered(database: Database) -> list[str]:
    return [found.group(1) for statement in database.statements if (found := ALTERED.fullmatch(statement))]


def columns(database: Database, table: str) -> list[str]:
    return [row[0] for row in database.sql("SELECT name FROM pragma_table_info(?)", table)]


def everything(database: Database) -> list[Any]:
    tables = [name for name, _ in definitions("")]
    return [database.sql(f"SELECT * FROM {table}") for table in tables]


def test_a_preview_changes_nothing_and_the_first_restore_adds_the_extras_to_the_tables_it_writes(
    native: Database,
) -> None:
    made = archive("project_ns_plover")
    affected = {store for store, rows in made["stores"].items() if rows}
    with open_provider(native) as provider:
        preview = MemoryArchive(provider).import_archive(made)
        assert preview["ok"] and preview["atomic"]
        assert altered(native) == []
        assert {statement.split()[0] for statement in native.statements} == {"SELECT", "SET"}
        assert EXTRAS not in columns(native, "tool_log")
        report = MemoryArchive(provider).import_archive(made, dry_run=False)
        assert report["ok"], report["errors"]
        assert set(altered(native)) == affected
        assert EXTRAS in columns(native, "tool_log")
        assert EXTRAS not in columns(native, "personas")
        MemoryArchive(provider).import_archive(made, dry_run=False, conflict="replace")
        assert set(altered(native)) == affected and len(altered(native)) == len(affected)


def test_extras_that_another_program_adds_at_the_same_time_are_no_error(native: Database) -> None:
    def race(statement: str) -> None:
        if ALTERED.fullmatch(statement):
            native.sql(f"ALTER TABLE knowledge_base ADD COLUMN {EXTRAS} CLOB")

    native.before = race
    with open_provider(native) as provider:
        provider.put(KB, [("a", {**FACT, "more": [1]})])
        found = provider.get(KB, "a")
    assert found is not None and found["more"] == [1]
    assert altered(native) == ["knowledge_base"]


def test_a_table_that_got_its_extras_meanwhile_is_read_with_them(native: Database) -> None:
    with open_provider(native) as reader, open_provider(native) as writer:
        assert reader.count(KB) == 0
        writer.put(KB, [("a", {**FACT, "more": 1})])
        assert reader.get(KB, "a") == {**FACT, "more": 1, "_id": "a", "id": "a"}
        with reader.snapshot():
            assert [record["more"] for record in reader.scan(KB)] == [1]


def test_a_schema_without_tables_gets_them_at_the_first_write(database: Database, provider: OracleProvider) -> None:
    assert list(provider.scan(KB)) == [] and provider.find(KB, ["a"]) == {} and provider.count(KB) == 0
    assert provider.delete(KB, ["a"]) == 0
    provider.check(KB, "a", dict(FACT))
    assert not any(statement.startswith("CREATE") for statement in database.statements)
    provider.put(KB, [("a", dict(FACT))])
    made = [statement for statement in database.statements if statement.startswith("CREATE TABLE")]
    assert len(made) == 13 + 5
    assert altered(database) == []


def test_a_provider_that_only_reads_neither_makes_nor_alters_anything(native: Database) -> None:
    key = uuid.uuid4()
    native.sql("INSERT INTO knowledge_base (id, memory_id, content) VALUES (?, 'ns', 'x')", key.bytes)
    before = everything(native)
    with open_provider(native, read_only=True) as provider:
        assert provider.capabilities.read_only
        assert provider.get(KB, str(key)) == {"memory_id": "ns", "content": "x", "_id": str(key), "id": str(key)}
        preview = MemoryArchive(provider).import_archive(archive("project_ns_plover"))
        assert preview["ok"] is False
        for write in (
            lambda: MemoryArchive(provider).import_archive(archive("project_ns_plover"), dry_run=False),
            lambda: provider.put(KB, [("b", dict(FACT))]),
            lambda: provider.archive_prepare([KB]),
            lambda: provider.delete(KB, [str(key)]),
        ):
            with pytest.raises(ReadOnlyProvider, match="reading only"):
                write()
    assert everything(native) == before
    assert {statement.split()[0] for statement in native.statements} == {"SELECT", "SET"}


def test_a_user_who_may_not_alter_the_table_is_told_which_privilege_is_missing(native: Database) -> None:
    def refuse(statement: str) -> None:
        if statement.startswith("ALTER"):
            raise ora(1031, "insufficient privileges")

    native.before = refuse
    with open_provider(native) as provider:
        before = everything(native)
        expected = r"may not add archive_extras to the table \w+: that needs the privilege ALTER on it$"
        with pytest.raises(ProviderFault, match=expected):
            MemoryArchive(provider).import_archive(archive("project_ns_plover"), dry_run=False)
    assert everything(native) == before
    assert native.in_use == 0


def test_a_connection_lost_in_the_middle_of_a_restore_leaves_nothing_of_it(native: Database) -> None:
    made = archive("agent_coordinator")

    def lose(statement: str) -> None:
        if statement.startswith("INSERT INTO summaries"):
            raise ora(3113, "end-of-file", oracledb.OperationalError)

    with open_provider(native) as provider:
        before = everything(native)
        native.before = lose
        report = MemoryArchive(provider).import_archive(made, dry_run=False)
        assert (report["ok"], report["imported"]) == (False, 0)
        assert report["errors"][0]["error_type"] == "ProviderFault"
        assert "ORA-03113" in report["errors"][0]["message"]
        assert "secret" not in str(report) and "\n" not in report["errors"][0]["message"]
        after = everything(native)
        assert [len(rows) for rows in after] == [len(rows) for rows in before]
        native.before = lambda _: None
        assert MemoryArchive(provider).import_archive(made, dry_run=False)["ok"]
    assert native.in_use == 0


def test_a_commit_that_fails_is_a_fault(provider: OracleProvider, database: Database) -> None:
    provider.put(KB, [("a", dict(FACT))])

    def fail(statement: str) -> None:
        if statement == "COMMIT":
            raise ora(3113, "end-of-file", oracledb.OperationalError)

    database.before = fail
    with pytest.raises(ProviderFault, match=r"^Oracle at db\.example/harbor: ORA-03113: end-of-file"):
        provider.put(KB, [("b", dict(FACT))])
    database.before = lambda _: None
    assert provider.count(KB) == 1


def test_a_record_that_another_program_writes_at_the_same_moment_is_there_already(
    provider: OracleProvider, database: Database
) -> None:
    provider.put(KB, [("a", dict(FACT))])

    def race(statement: str) -> None:
        if statement.startswith("INSERT INTO knowledge_base"):
            raise ora(1, "unique constraint violated", oracledb.IntegrityError)

    database.before = race
    with provider.transaction():
        with pytest.raises(RecordExists, match="another program"):
            provider.put(KB, [("b", dict(FACT))])
        database.before = lambda _: None
        provider.put(KB, [("c", dict(FACT))])
    assert [record["_id"] for record in provider.scan(KB)] == ["a", "c"]


def test_many_threads_use_the_pool_and_give_back_what_they_took(provider: OracleProvider, database: Database) -> None:
    def work(name: int) -> None:
        for n in range(10):
            provider.put(KB, [(f"{name}-{n}", {**FACT, "n": n})])
            with provider.snapshot():
                assert provider.get(KB, f"{name}-{n}") is not None
            with pytest.raises(RecordExists):
                provider.put(KB, [(f"{name}-{n}", dict(FACT))])

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(work, name) for name in range(4)]:
            done.result()
    assert provider.count(KB) == 40
    assert database.in_use == 0


def test_another_schema_is_named_in_every_statement(database: Database) -> None:
    # SQLite calls its only schema so.
    database.sql("DROP VIEW IF EXISTS all_tab_columns")
    with open_provider(database, schema="main") as provider:
        provider.put(MemoryType.MEMAGENT, [("a", {"delegates": ["a"]})])
    touched = [statement for statement in database.statements if statement.startswith(("CREATE", "INSERT", "DELETE"))]
    assert all(re.match(r"(CREATE TABLE|INSERT INTO|DELETE FROM) main\.", statement) for statement in touched)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"user": ""}, "'user' of the provider 'oracle' must be text"),
        ({"password": None}, "'password' of the provider 'oracle' must be text"),
        ({"schema": 'x"; DROP'}, "schema must be the name of a schema"),
        ({"index_policy": "never"}, "index_policy must be one of lazy, none, selected, eager"),
        ({"vector_search_mode": "fast"}, "vector_search_mode must be one of exact, approximate"),
        ({"pool_min": 6}, "pool_min one from 0 to pool_max"),
        ({"pool_max": 0, "pool_min": 0}, "pool_max and pool_increment must be whole numbers from 1"),
        ({"pool_wait_timeout": 0}, "pool_wait_timeout must be a number of seconds"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    config = OracleConfig("u", "p", "d")._replace(**changes)
    with pytest.raises(ConfigurationError, match=message):
        OracleProvider(config, connect=lambda: None)


def test_the_driver_that_is_missing_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "oracledb", None)
    with pytest.raises(ConfigurationError) as raised:
        OracleProvider(OracleConfig("u", "p", "d"))
    assert str(raised.value) == (
        "the provider 'oracle' needs the library python-oracledb: pip install 'agent-memory[oracle]'"
    )


def test_options_that_are_missing_are_named() -> None:
    with pytest.raises(ConfigurationError, match="the provider 'oracle' needs the option 'password'"):
        open_by_kind("oracle", {"user": "u"})


def test_a_database_that_cannot_be_reached_is_a_fault_in_one_sentence_without_the_password() -> None:
    # Port 1 of this machine: nobody listens there.
    config = OracleConfig("memo", "hunter2", "memo/hunter2@127.0.0.1:1/none?retry_count=0")
    with pytest.raises(ProviderFault) as raised:
        OracleProvider(config._replace(pool_wait_timeout=5))
    said = str(raised.value)
    assert said.startswith("Oracle at 127.0.0.1:1/none")
    assert "hunter2" not in said and "\n" not in said
    assert "hunter2" not in repr(config)


def test_the_pool_is_opened_as_configured_and_closed(monkeypatch: pytest.MonkeyPatch, database: Database) -> None:
    asked: list[dict[str, Any]] = []

    class Pool:
        closed = False

        def acquire(self) -> Any:
            return database.connect()

        def close(self, force: bool = False) -> None:
            self.closed = force

    pool = Pool()

    def create_pool(**options: Any) -> Pool:
        asked.append(options)
        return pool

    monkeypatch.setattr(oracle_driver.load(), "create_pool", create_pool)
    config = OracleConfig("memo", "pw", "db/x", pool_min=2, pool_max=7, pool_increment=3, pool_wait_timeout=1.5)
    with OracleProvider(config) as provider:
        assert provider.count(KB) == 0
    assert pool.closed
    assert asked == [
        {
            "user": "memo", "password": "pw", "dsn": "db/x", "min": 2, "max": 7, "increment": 3,
            "getmode": oracledb.POOL_GETMODE_TIMEDWAIT, "wait_timeout": 1500,
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("store", "record", "message"),
    [
        ("knowledge_base", {"memory_id": "ns"}, "knowledge_base 'x': content must be there and not be empty"),
        ("knowledge_base", {"content": "a"}, "knowledge_base 'x': memory_id must be there and not be empty"),
        ("knowledge_base", {**FACT, "content": ""}, "content must be there and not be empty"),
        ("conversation_memory", {**FACT, "role": "pilot"}, "role must be one of user, assistant, system, tool"),
        ("toolbox", {"description": "a"}, "toolbox 'x': name must be there and not be empty"),
        ("personas", {"name": "n" * 256}, r"personas 'x': name must have at most 255 characters and 1020 bytes"),
        ("personas", {"persona_id": "p" * 256, "name": "n"}, "persona_id must have at most 255 characters"),
        ("knowledge_base", {**FACT, "status": "s" * 33}, "status must have at most 32 characters"),
        ("agents", {"knowledge_base_ids": ["k" * 65]}, "what knowledge_base_ids lists must have at most 64"),
        ("tool_log", {"tool_name": None}, "tool_log 'x': tool_name must be there"),
    ],
)
def test_what_a_table_cannot_hold_is_refused_before_anything_is_written(
    provider: OracleProvider, database: Database, store: str, record: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRecord, match=message) as checked:
        provider.check(MemoryType(store), "x", record)
    with pytest.raises(InvalidRecord) as put:
        provider.put(MemoryType(store), [("x", record)])
    assert str(put.value) == str(checked.value)
    assert not any(statement.startswith(("INSERT", "CREATE")) for statement in database.statements)


def test_an_archive_that_does_not_fit_is_refused_by_the_preview(native: Database) -> None:
    native.sql("ALTER TABLE tool_log ADD COLUMN ticket VARCHAR2(10) NOT NULL DEFAULT 'x'")
    native.sql("CREATE TABLE replaced AS SELECT 1")
    with open_provider(native) as provider:
        made = archive("project_ns_plover")
        assert MemoryArchive(provider).import_archive(made)["ok"]
        source = made["stores"]["tool_log"][0]["data"]
        assert source["tool_name"]
    native.sql("DROP TABLE tool_log")
    native.sql("CREATE TABLE tool_log (id RAW(16) PRIMARY KEY, tool_log_id VARCHAR2(255), tool_name VARCHAR2(3))")
    with open_provider(native) as provider, pytest.raises(MemoryArchiveError, match="tool_name must have at most 3"):
        MemoryArchive(provider).import_archive(made)
