"""Users who share agents: what one may take along, bring back and change."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from memorizz import UNSET, FileSystemProvider, MemoryArchive, MemoryArchiveError, MemoryProvider, MemoryType
from tests.memorizz.transfer.conftest import Open
from tests.memorizz.transfer.test_import import agent, fact, small, stored

SCOPES: list[Any] = ["ana", "ben", None, "", UNSET]


def harbour(provider: MemoryProvider) -> None:
    """A shared agent with a delegate, and a record of each user and of nobody."""
    titles = {"t-ana": "Ana's thread", "t-ben": "Ben's thread", "ns": "Harbour", "t-lost": "No rows"}
    agents = [agent("keel", memory_ids=["ns"], delegates=["plover"], thread_titles=titles), agent("plover")]
    provider.put(MemoryType.MEMAGENT, [(record["_id"], record) for record in agents])
    users = ("ana", "ben", None, "")
    rows = [fact(f"f-{user}", user_id=user, thread_id=f"t-{user}", agent_id="keel") for user in users]
    rows += [fact(f"p-{user}", user_id=user, memory_id="ns-plover") for user in users]
    provider.put(MemoryType.KNOWLEDGE_BASE, [(row["_id"], row) for row in rows])


@pytest.mark.parametrize(("made_for", "scope"), list(product(SCOPES, SCOPES)))
def test_an_archive_comes_back_in_its_own_scope_and_no_other(open_empty: Open, made_for: Any, scope: Any) -> None:
    source, target = open_empty("source"), open_empty("target")
    harbour(source)
    made = MemoryArchive(source).export(user_id=made_for)
    before = stored(target)
    if scope is UNSET or scope == made_for:
        assert MemoryArchive(target).import_archive(made, dry_run=False, user_id=scope)["ok"]
        if scope is not UNSET:
            again = MemoryArchive(target).export(user_id=scope)
            assert again["manifest"]["counts"] == made["manifest"]["counts"]
            assert again["manifest"]["counts"]["agents"] == 2
    else:
        for dry_run in (True, False):
            with pytest.raises(MemoryArchiveError, match="outside of the scope"):
                MemoryArchive(target).import_archive(made, dry_run=dry_run, user_id=scope)
        assert stored(target) == before


def test_a_user_restores_lost_records_beside_a_shared_agent_without_changing_it(target: MemoryProvider) -> None:
    harbour(target)
    before = stored(target)
    made = MemoryArchive(target).export(user_id="ana")
    target.delete(MemoryType.KNOWLEDGE_BASE, ["f-ana"])
    importing = MemoryArchive(target)
    preview = importing.import_archive(made, user_id="ana")
    assert (preview["ok"], len(preview["conflicts"])) == (False, 3)
    with pytest.raises(MemoryArchiveError, match="outside of the scope; conflict skip keeps it"):
        importing.import_archive(made, user_id="ana", conflict="replace")
    report = importing.import_archive(made, dry_run=False, user_id="ana", conflict="skip")
    assert (report["ok"], report["imported"], report["skipped"]) == (True, 1, 3)
    assert stored(target) == before


def test_a_users_agent_may_delegate_to_a_shared_one(target: MemoryProvider) -> None:
    target.put(MemoryType.MEMAGENT, [("plover", agent("plover")), ("bens", agent("bens", user_id="ben"))])
    mine = agent("mine", user_id="ana", delegates=["plover"])
    assert MemoryArchive(target).import_archive(small(agents=[mine]), user_id="ana")["ok"]
    mine["delegates"] = ["bens"]
    with pytest.raises(MemoryArchiveError, match="delegate 'bens' is in neither archive nor destination"):
        MemoryArchive(target).import_archive(small(agents=[mine]), user_id="ana")


def test_titles_of_other_users_threads_stay_behind(target: MemoryProvider) -> None:
    harbour(target)

    def titles(**options: Any) -> Any:
        agents = {row["id"]: row["data"] for row in MemoryArchive(target).export(**options)["stores"]["agents"]}
        return agents["keel"]["thread_titles"]

    assert titles(user_id="ana") == {"t-ana": "Ana's thread", "ns": "Harbour"}
    assert len(titles()) == 4
    own = agent("keel", user_id="ana", thread_titles={"t-lost": "No rows"})
    target.put(MemoryType.MEMAGENT, [("keel", own)], replace=True)
    assert titles(user_id="ana") == {"t-lost": "No rows"}


def test_a_user_gets_only_agents_of_own_namespaces(reference: FileSystemProvider) -> None:
    made = MemoryArchive(reference).export(user_id="ana")
    assert [row["id"] for row in made["stores"]["agents"]] == ["agent-plover", "agent-keel"]
    assert [row["id"] for row in MemoryArchive(reference).export(user_id="bo")["stores"]["agents"]] == [
        "agent-keel",
        "agent-other",
    ]
    assert MemoryArchive(reference).export(user_id="nobody-known")["manifest"]["record_count"] == 0
