"""No query is wrong, whatever characters it is made of, in both modes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agent_memory
from agent_memory.embed.ollama import OllamaEmbedder
from agent_memory.service.memory import AgentMemory
from tests.contract.queries import UNPARSABLE
from tests.contract.test_search import FACTS
from tests.support.ollama import FakeOllama, hashed_vector

SYNTAX = st.sampled_from(
    ["AND", "OR", "NOT", "NEAR", "NEAR(", "(", ")", '"', "*", "^", ":", "-", "+", "{", "}", ",", "content", "rank",
     "rowid", "'", " ", "\0", "\n", "\\", "sidebar", "用户", "colour*", "0", "\ud800", "İ"]
)  # fmt: skip
queries = st.one_of(
    st.text(max_size=40),
    st.text(st.characters(exclude_categories=()), max_size=20),  # with lone surrogates
    st.lists(st.one_of(SYNTAX, st.text(max_size=3)), max_size=12).map("".join),
    st.lists(SYNTAX, max_size=10).map(" ".join),
    st.tuples(SYNTAX, st.sampled_from(["reads", "id", "rank", "rebuild", "sidebar"])).map("".join),
    st.sampled_from(UNPARSABLE),
)


@pytest.fixture(scope="module", params=["keyword", "hybrid"])
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentMemory]:
    """A memory of some facts in several scripts, in each mode."""
    path: Path = tmp_path_factory.mktemp("queries") / "memory.db"
    with (
        FakeOllama(constant=hashed_vector("always")) as ollama,
        agent_memory.open(path, embedder=OllamaEmbedder(ollama.url)) as memory,
    ):
        for fact in (*FACTS, "本系统的用户身份验证流程", "重跑gen-itgc后50条", "café ＡＢＣ straße"):
            memory.store(fact, "PATTERN", tags=["fact"], scope="s")
        if request.param == "keyword":
            ollama.mode = "empty"
        yield memory


@settings(max_examples=2_000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=queries, filtered=st.booleans())
def test_two_thousand_random_queries_are_all_answered(
    prepared: AgentMemory, request: pytest.FixtureRequest, query: str, filtered: bool
) -> None:  # A5
    answer = prepared.search(query, limit=5, scope="s" if filtered else None)
    assert answer.search_mode == request.node.callspec.params["prepared"]
    assert len(answer.results) <= 5
    assert len({found.id for found in answer.results}) == len(answer.results)
