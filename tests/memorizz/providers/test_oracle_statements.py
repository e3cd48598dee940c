"""Every statement that is sent to Oracle is one in its grammar, and a restore takes few of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlglot

from memorizz import MemoryArchive, MemoryType
from memorizz.providers.oracle_schema import SIDE_TABLES, TABLES, definitions
from tests.memorizz.support import archive
from tests.support.oracle import Database
from tests.support.oracle_backend import open_provider

# Oracle has these, and sqlglot no grammar for them.
_PLAIN = re.compile(
    r"(SAVEPOINT memorizz_\d+|ROLLBACK TO SAVEPOINT memorizz_\d+|LOCK TABLE \w+ IN EXCLUSIVE MODE WAIT \d+)"
)


def parses(statement: str) -> bool:
    if _PLAIN.fullmatch(statement):
        return True
    parsed = sqlglot.parse(statement, dialect="oracle")
    return len(parsed) == 1 and not isinstance(parsed[0], sqlglot.exp.Command)


@pytest.mark.parametrize(
    ("name", "statement"), list(definitions("harbor.")), ids=lambda value: str(value).split(" ")[0]
)
def test_every_table_is_defined_by_a_statement_of_oracle(name: str, statement: str) -> None:
    assert parses(statement)
    assert statement.startswith(f"CREATE TABLE harbor.{name} (")


def test_there_is_a_table_for_every_store_and_for_what_is_kept_beside_agents_and_summaries() -> None:
    assert [name for name, _ in definitions("")] == [*TABLES, *SIDE_TABLES]
    assert set(TABLES) == set(MemoryType)
    for table in TABLES.values():
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)
        assert table.natural is None or names[0] == table.natural
        assert ("embedding" in names) == (table.store is not MemoryType.TOOL_LOG)


def test_everything_that_a_provider_says_is_in_the_grammar_of_oracle(tmp_path: Path) -> None:
    database = Database(tmp_path / "db")
    with open_provider(database) as provider:
        for _ in range(2):
            made = archive("agent_coordinator")
            report = MemoryArchive(provider).import_archive(made, dry_run=False, conflict="replace")
            assert report["ok"], report["errors"]
        provider.update_by_id("agent-keel", {"name": "Keel"}, "agents")
        provider.problems()
        provider.delete_memagent("agent-keel", cascade=True)
        for store in MemoryType:
            provider.count(store)
            provider.delete_all(store)
        with provider.transaction(), provider.transaction():
            provider.put(MemoryType.MEMAGENT, [("a", {})])
    assert [statement for statement in sorted(set(database.statements)) if not parses(statement)] == []
    kinds = {statement.split()[0] for statement in database.statements}
    assert kinds == {"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "LOCK", "SAVEPOINT", "SET"}


def test_no_value_is_written_into_a_statement(tmp_path: Path) -> None:
    database = Database(tmp_path / "db")
    with open_provider(database) as provider:
        hostile = "x'; DROP TABLE agents; --"
        record = {"content": hostile, "memory_id": hostile, hostile: hostile}
        provider.put(MemoryType.KNOWLEDGE_BASE, [(hostile, record)])
        assert provider.find(MemoryType.KNOWLEDGE_BASE, [hostile]) == {hostile: hostile}
        assert provider.get(MemoryType.KNOWLEDGE_BASE, hostile) == {**record, "_id": hostile, "id": hostile}
    assert not any("DROP" in statement for statement in database.statements)


def test_a_thousand_records_take_as_many_statements_as_ten(tmp_path: Path) -> None:
    counted = []
    for number in (10, 1_000):
        database = Database(tmp_path / f"db-{number}")
        with open_provider(database) as provider:
            provider.put(MemoryType.KNOWLEDGE_BASE, [])
            before = len(database.statements)
            records = [(f"r{n}", {"content": f"{n}", "memory_id": "ns"}) for n in range(number)]
            provider.put(MemoryType.KNOWLEDGE_BASE, records)
            counted.append(len(database.statements) - before)
            assert [record["content"] for record in provider.scan(MemoryType.KNOWLEDGE_BASE)] == [
                str(n) for n in range(number)
            ]
    # The lists of ids in a query have an end.
    assert counted[1] <= counted[0] + 2
