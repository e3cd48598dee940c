"""The database: how exactly it keeps records, whose they are, who waits for whom, and what a lost connection leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

from memorizz import (
    FileSystemConfig,
    FileSystemProvider,
    MemoryArchive,
    MemoryProvider,
    PostgresConfig,
    PostgresProvider,
    SQLiteConfig,
    SQLiteProvider,
    enable_memory_history,
)
from memorizz.errors import ConfigurationError, InvalidRecord, ProviderFault, ReadOnlyProvider, RecordExists
from memorizz.taxonomy import MemoryType
from tests.memorizz.providers.backends import Place
from tests.memorizz.support import VALID, archive, reference_folder
from tests.support import postgres

KB = MemoryType.KNOWLEDGE_BASE
CACHE = MemoryType.SEMANTIC_CACHE


@pytest.fixture
def schema() -> str:
    return postgres.fresh_schema()


def opened(schema: str, url: str | None = None, *, read_only: bool = False, **parameters: str) -> PostgresProvider:
    where = make_conninfo(url or postgres.url(), **parameters)
    return PostgresProvider(PostgresConfig(where, schema, read_only=read_only))


@pytest.fixture
def provider(schema: str) -> Iterator[PostgresProvider]:
    with opened(schema) as provider:
        yield provider


def ids(provider: MemoryProvider, store: MemoryType = KB) -> list[str]:
    return [record["_id"] for record in provider.scan(store)]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**60, max_value=10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, 1, 1e16, 10**16, "\0", "\\u0000", "\ufeff\uffff\U0010ffff"])
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
COLUMNS = ("cache_key", "memory_id", "agent_id", "user_id")


def test_a_record_comes_back_to_the_letter(provider: PostgresProvider) -> None:
    @settings(max_examples=200)
    @given(st.lists(st.dictionaries(TEXT | st.sampled_from(COLUMNS), VALUES, max_size=5), min_size=1, max_size=3))
    def holds(records: list[dict[str, Any]]) -> None:
        provider.put(CACHE, [(str(number), record) for number, record in enumerate(records)], replace=True)
        for number, record in enumerate(records):
            # As text: 1 and 1.0, 0.0 and -0.0, or two orders of keys would be equal as values.
            id = str(number)
            assert json.dumps(provider.get(CACHE, id)) == json.dumps({**record, "_id": id, "id": id})

    holds()


@pytest.mark.parametrize("natural", ["nul\0inside", "x" * 100_000, "é" * 513, "sha256:0"])
def test_a_natural_id_that_no_index_could_hold_is_found_all_the_same(provider: PostgresProvider, natural: str) -> None:
    record: dict[str, Any] = dict.fromkeys(COLUMNS, natural)
    provider.put(CACHE, [("a", {}), ("b", record)])
    assert provider.find(CACHE, [natural, "a", "half \ud800"]) == {natural: "b", "a": "a"}
    assert provider.get(CACHE, "b") == {**record, "_id": "b", "id": "b"}


def test_an_id_with_a_character_that_the_database_has_not_is_refused(provider: PostgresProvider) -> None:
    with pytest.raises(InvalidRecord, match=r"the id must not hold the character U\+0000"):
        provider.put(KB, [("nul\0", {})])


def test_many_and_big_records_are_written_together_in_their_order(provider: PostgresProvider) -> None:
    rows = [(f"r{7919 * n % 10_007}", {"text": "x" * (3_000_000 if n % 1_000 == 0 else 10)}) for n in range(4_100)]
    provider.put(KB, rows)
    assert ids(provider) == [id for id, _ in rows]
    with pytest.raises(RecordExists, match=f"{rows[4_000][0]!r}: a record of this id is there already"):
        provider.put(KB, [(f"new-{n}", {}) for n in range(3_000)] + rows[4_000:])
    assert provider.count(KB) == 4_100


def test_an_archive_goes_from_a_folder_through_the_database_to_a_file_unchanged(
    provider: PostgresProvider, tmp_path: Path
) -> None:
    folder = FileSystemProvider(FileSystemConfig(reference_folder(tmp_path / "folder")))
    file = SQLiteProvider(SQLiteConfig(tmp_path / "memory.sqlite3"))
    made = MemoryArchive(folder).export()
    for target in (provider, file):
        assert MemoryArchive(target).import_archive(made, dry_run=False)["ok"]
        made = MemoryArchive(target).export()
    first = MemoryArchive(folder).export()
    assert made["stores"] == {**first["stores"], "agents": made["stores"]["agents"]}
    assert made["stores"] == MemoryArchive(provider).export()["stores"]
    folder.close()
    file.close()


@pytest.mark.parametrize("name", [path.name.removesuffix(".memorizz.json") for path in VALID])
def test_every_archive_of_the_reference_is_restored_as_into_a_file(
    provider: PostgresProvider, tmp_path: Path, name: str
) -> None:
    with SQLiteProvider(SQLiteConfig(tmp_path / "memory.sqlite3")) as file:
        for target in (provider, file):
            target.put(MemoryType.MEMAGENT, [(id, {"agent_id": id}) for id in ("agent-plover", "agent-keel")])
            report = MemoryArchive(target).import_archive(archive(name), dry_run=False, conflict="replace")
            assert report["ok"], report["errors"]
        for store in MemoryType:
            assert list(provider.scan(store)) == list(file.scan(store))


def test_a_snapshot_stands_still_while_another_process_writes(schema: str) -> None:
    place = Place("postgres", {"url": postgres.url(), "schema": schema})
    with place.open() as provider, place.start("put-forever", 10, "new") as process:
        assert process.stdout is not None
        process.stdout.readline()
        with provider.snapshot():
            before = {store: list(provider.scan(store)) for store in MemoryType}
            for _ in range(5):
                process.stdout.readline()
            assert {store: list(provider.scan(store)) for store in MemoryType} == before
        assert provider.count(KB) > len(before[KB]) >= 20
        process.kill()


def test_processes_and_threads_that_make_the_schema_at_once_make_one(schema: str) -> None:
    place = Place("postgres", {"url": postgres.url(), "schema": schema})
    processes = [place.start("put", name) for name in "ab"]
    with ThreadPoolExecutor(8) as threads:
        for provider in threads.map(lambda _: opened(schema), range(8)):
            provider.close()
    assert [process.wait(60) for process in processes] == [0, 0]
    for process in processes:
        process.communicate()
    with opened(schema) as provider:
        assert sorted(ids(provider)) == ["a", "b"]
    assert postgres.execute("SELECT version FROM {}.schema_version", schema) == [(1,)]


@pytest.mark.parametrize("read_only", [False, True])
def test_a_schema_of_a_newer_version_is_refused(schema: str, read_only: bool) -> None:
    opened(schema).close()
    postgres.execute("UPDATE {}.schema_version SET version = 2", schema)
    with pytest.raises(ConfigurationError, match="has version 2, and this program knows up to 1"):
        opened(schema, read_only=read_only)


def test_a_version_that_comes_while_it_is_open_is_refused_by_the_next_connection(provider: PostgresProvider) -> None:
    with provider.snapshot():
        postgres.execute("UPDATE {}.schema_version SET version = 2", provider.config.schema)
        with pytest.raises(ConfigurationError, match="has version 2"):
            provider.put(KB, [("a", {})])


@pytest.mark.parametrize("table", ["records (x int)", "schema_version (x int)", "schema_version (version int)"])
def test_a_schema_with_tables_of_another_program_is_refused_and_stays_as_it_was(schema: str, table: str) -> None:
    postgres.execute("CREATE SCHEMA {}", schema)
    postgres.execute(f"CREATE TABLE {{}}.{table}", schema)
    with pytest.raises(ConfigurationError, match="left as it is"):
        opened(schema)
    tables = postgres.execute(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")
    assert tables == [(table.partition(" ")[0],)]


def test_a_schema_that_was_dropped_is_not_made_again_by_a_later_connection(provider: PostgresProvider) -> None:
    with provider.snapshot():
        pass
    with provider.snapshot(), ThreadPoolExecutor(1) as thread:
        thread.submit(provider.count, KB).result()
    provider.close()
    with opened(provider.config.schema) as fresh, fresh.snapshot(), ThreadPoolExecutor(1) as thread:
        postgres.execute("ALTER SCHEMA {} RENAME TO {}", provider.config.schema, f"{provider.config.schema}_away")
        with pytest.raises(ConfigurationError, match="there is no memory in the schema"):
            thread.submit(fresh.count, KB).result()
    postgres.execute("DROP SCHEMA {} CASCADE", f"{provider.config.schema}_away")


def test_a_role_that_may_make_no_schema_uses_one_that_was_made_for_it(schema: str) -> None:
    with postgres.role() as role:
        with pytest.raises(ProviderFault, match="permission denied"):
            opened(schema, postgres.url_of(role))
        postgres.execute("CREATE SCHEMA {} AUTHORIZATION {}", schema, role)
        with opened(schema, postgres.url_of(role)) as provider:
            provider.put(KB, [("a", {})])
            assert ids(provider) == ["a"]


def test_any_name_of_a_schema_is_only_a_name() -> None:
    name = 'a "b" %s %(c)s {d}; é'
    with opened(name) as provider:
        provider.put(KB, [("a", {})])
        assert ids(provider) == ["a"]
    postgres.execute("DROP SCHEMA {} CASCADE", name)
    for wrong in ("", "x" * 64, "é" * 32, "nul\0", "\ud800"):
        with pytest.raises(ConfigurationError, match="the schema must be a name of 1 to 63 bytes"):
            opened(wrong)


def test_reading_only_the_server_itself_refuses_to_write(schema: str) -> None:
    opened(schema).close()
    with opened(schema, read_only=True, application_name=schema) as provider:
        assert provider.count(KB) == 0
        with pytest.raises(ReadOnlyProvider, match="reading only"):
            provider.restrict_role("postgres")
    # As a standby server does, or an administrator who says so.
    with opened(schema, options="-c default_transaction_read_only=on") as provider:
        with pytest.raises(ReadOnlyProvider, match="is for reading only"):
            provider.put(KB, [("a", {})])
        assert provider.count(KB) == 0


@pytest.fixture
def shared(schema: str) -> Iterator[PostgresProvider]:
    """Records of two users and of nobody, seen by the role that owns them."""
    with opened(schema) as owner:
        for user in ("ana", "bo", None):
            owner.put(KB, [(f"of {user}", {"content": "x", "user_id": user})])
        yield owner


def test_a_restricted_role_sees_and_writes_the_records_of_its_user_only(shared: PostgresProvider) -> None:
    with postgres.role() as role:
        shared.restrict_role(role, "bo")
        shared.restrict_role(role, "ana")
        with opened(shared.config.schema, postgres.url_of(role)) as hers:
            assert ids(hers) == ["of ana"]
            assert (hers.count(KB), hers.get(KB, "of bo"), hers.find(KB, ["of bo"])) == (1, None, {})
            assert hers.delete(KB, ["of bo", "of None"]) == 0
            hers.put(KB, [("more", {"user_id": "ana"}), ("of ana", {"user_id": "ana", "n": 1})], replace=True)
            for record in ({"user_id": "bo"}, {}):
                with pytest.raises(ProviderFault, match="row-level security"):
                    hers.put(KB, [("other", record)])
            with pytest.raises(ProviderFault, match="row-level security"):
                hers.put(KB, [("of bo", {"user_id": "ana"})], replace=True)
            with pytest.raises(RecordExists, match="is there already"):
                hers.put(KB, [("of bo", {"user_id": "ana"})])
            assert ids(hers) == ["of ana", "more"]
            assert MemoryArchive(hers).export(user_id="ana")["manifest"]["record_count"] == 2
        assert ids(shared) == ["of ana", "of bo", "of None", "more"]


def test_a_role_of_a_server_sees_the_records_of_the_user_its_session_names(shared: PostgresProvider) -> None:
    with postgres.role() as role:
        shared.restrict_role(role)
        where = postgres.url_of(role)
        with opened(shared.config.schema, where) as nobody:
            assert ids(nobody) == []
        for user in ("ana", "bo"):
            with opened(shared.config.schema, where, options=f"-c memorizz.user_id={user}") as theirs:
                assert ids(theirs) == [f"of {user}"]


def test_a_journal_row_belongs_to_the_user_whose_record_changed(shared: PostgresProvider) -> None:
    with postgres.role() as role:
        shared.restrict_role(role, "ana")
        enable_memory_history(shared)
        shared.store({"content": "new", "user_id": "ana"}, KB)
        shared.store({"content": "new", "user_id": "bo"}, KB)
        with opened(shared.config.schema, postgres.url_of(role)) as hers:
            journal = [record["user_id"] for record in hers.scan(MemoryType.SHARED_MEMORY)]
        assert journal == ["ana"] * (shared.count(MemoryType.SHARED_MEMORY) // 2) != []


def test_the_schema_can_be_shared_in_part_by_a_policy_of_the_owners(shared: PostgresProvider) -> None:
    with postgres.role() as role:
        shared.restrict_role(role, "ana")
        postgres.execute(
            "CREATE POLICY shared ON {}.records FOR SELECT USING (user_id IS NULL AND store = 'knowledge_base')",
            shared.config.schema,
        )
        with opened(shared.config.schema, postgres.url_of(role)) as hers:
            assert ids(hers) == ["of ana", "of None"]


def terminate(schema: str) -> None:
    """End the connections that call themselves as the schema."""
    with postgres.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = %s", (schema,)
        )


def test_a_connection_that_was_lost_between_two_blocks_is_not_noticed(schema: str) -> None:
    with opened(schema, application_name=schema) as provider:
        provider.put(KB, [("a", {})])
        terminate(schema)
        provider.put(KB, [("b", {})])
        terminate(schema)
        assert ids(provider) == ["a", "b"]


def _go_on_without_a_connection(provider: PostgresProvider, schema: str) -> None:
    with provider.transaction():
        provider.put(KB, [("a", {})])
        terminate(schema)
        for _ in range(2):
            with pytest.raises(ProviderFault):
                provider.put(KB, [("b", {})])


def test_a_connection_that_is_lost_in_a_block_undoes_the_whole_block(schema: str) -> None:
    with opened(schema, application_name=schema) as provider:
        provider.put(KB, [("kept", {})])
        with pytest.raises(ProviderFault, match="the connection is closed"):
            _go_on_without_a_connection(provider, schema)
        assert ids(provider) == ["kept"]
        with provider.transaction():
            provider.put(KB, [("a", {}), ("b", {})])
        assert ids(provider) == ["kept", "a", "b"]


def test_a_connection_that_is_lost_at_the_end_of_a_block_leaves_it_open_and_says_so(schema: str) -> None:
    with opened(schema) as provider:
        with postgres.connect() as connection:
            connection.execute(
                f"CREATE FUNCTION {schema}.leave() RETURNS trigger LANGUAGE plpgsql AS"
                " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); END'"
            )
            connection.execute(
                f"CREATE CONSTRAINT TRIGGER leave AFTER INSERT ON {schema}.records"
                f" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {schema}.leave()"
            )
        with pytest.raises(ProviderFault, match="lost at the end of a block; it may be written or not"):
            provider.put(KB, [("a", {})])
        assert ids(provider) == []


def _go_on_after_a_failure(provider: PostgresProvider) -> None:
    with provider.transaction():
        postgres.execute("ALTER TABLE {}.records RENAME TO away", provider.config.schema)
        with pytest.raises(ProviderFault, match="does not exist"):
            provider.count(KB)
        postgres.execute("ALTER TABLE {}.away RENAME TO records", provider.config.schema)
        with pytest.raises(ProviderFault, match="aborted"):
            provider.count(KB)


def test_a_block_in_which_a_statement_failed_is_not_taken_for_written(provider: PostgresProvider) -> None:
    with pytest.raises(ProviderFault, match="had failed, so the whole block is undone"):
        _go_on_after_a_failure(provider)
    provider.put(KB, [("a", {})])
    assert ids(provider) == ["a"]


def test_whoever_waits_for_another_writer_too_long_is_told(schema: str) -> None:
    with opened(schema) as first, opened(schema, options="-c lock_timeout=10") as second:
        with first.exclusive(KB):
            with pytest.raises(ProviderFault, match="another program has been writing for too long"):
                second.put(KB, [("a", {})])
            assert ids(second) == []
        second.put(KB, [("a", {})])
        assert ids(first) == ["a"]


def test_threads_that_end_leave_no_connections_behind(schema: str) -> None:
    with opened(schema, application_name=schema) as provider:
        for _ in range(5):
            with ThreadPoolExecutor(6) as threads:
                list(threads.map(lambda _: provider.count(KB), range(60)))
        with postgres.connect() as connection:
            found = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (schema,)
            ).fetchone()
        # Some may be about to go.
        assert found is not None and found[0] <= 4 + 6


STOP = """
CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id = 'stop here' THEN
        COPY (SELECT 1) TO PROGRAM 'kill -QUIT {pid}';
        PERFORM pg_sleep(60);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER stop BEFORE INSERT ON memorizz.records FOR EACH ROW EXECUTE FUNCTION stop();
"""


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no such signals")
def test_a_server_that_stops_in_the_middle_of_a_restore_leaves_nothing_and_a_repeat_completes(tmp_path: Path) -> None:
    with SQLiteProvider(SQLiteConfig(tmp_path / "memory.sqlite3")) as source:
        rows = [(f"r{n}", {"content": "x", "memory_id": "ns"}) for n in range(3_000)]
        source.put(KB, [*rows, ("stop here", {"memory_id": "ns"})])
        source.put(MemoryType.SHORT_TERM_MEMORY, [("last", {"memory_id": "ns"})])
        made = MemoryArchive(source).export()
    server = postgres.start()
    try:
        with PostgresProvider(PostgresConfig(server.get_uri())) as provider:
            with postgres.connect(server.get_uri()) as connection:
                connection.execute(STOP.format(pid=server.get_pid()))
            importing = MemoryArchive(provider)
            report = importing.import_archive(made, dry_run=False)
            assert (report["ok"], report["imported"]) == (False, 0)
            with pytest.raises(ProviderFault, match="connection"):
                provider.count(KB)
            server.get_postmaster_info().process.wait(60)
            server.ensure_postgres_running()
            assert [provider.count(store) for store in MemoryType] == [0] * len(MemoryType)
            with postgres.connect(server.get_uri()) as connection:
                connection.execute("DROP TRIGGER stop ON memorizz.records")
            assert importing.import_archive(made, dry_run=False)["imported"] == 3_002
    finally:
        server.cleanup()


@pytest.mark.parametrize("url", ["postgresql://ana:s3cret%zz@host/db", "s3cret", "host=x s3cret=y", "\ud800"])
def test_an_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigurationError, match="must be like postgresql://user@host:5432/database") as raised:
        PostgresProvider(PostgresConfig(url))
    assert "s3cret" not in str(raised.value)


def test_a_database_that_cannot_be_reached_is_a_fault_in_one_sentence_without_the_password() -> None:
    for url in ("postgresql://ana:refused@127.0.0.1:1/db", make_conninfo(postgres.url(), dbname="nowhere")):
        with pytest.raises(ProviderFault, match=r"connection to server .* failed") as raised:
            PostgresProvider(PostgresConfig(url))
        assert "\n" not in str(raised.value)
        assert ":refused" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        *("postgresql://ana:s3cret@host/db?sslmode=require", "postgresql://ana@host/db?password=s3cret&x=y"),
        *("host=x password=s3cret", "host=x password = 's3cret \\' s3cret' user=ana", "postgres://:s3cret@host"),
    ],
)
def test_a_configuration_does_not_show_its_password(url: str) -> None:
    assert "s3cret" not in repr(PostgresConfig(url))
    assert "***" in repr(PostgresConfig(url))
    assert repr(PostgresConfig("host=x")) == "PostgresConfig(url='host=x', schema='memorizz', read_only=False)"


def test_without_the_driver_one_sentence_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from memorizz import *\n"
        "from memorizz.providers.registry import open_provider\n"
        "try: open_provider('postgres', {'url': 'postgresql://host/db'})\n"
        "except ConfigurationError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "the provider postgres needs the library psycopg: pip install 'agent-memory[postgres]'\n"
