"""How Notion is asked: how often, what is asked again, and what is never said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from memorizz.errors import ConfigurationError, ProviderFault
from memorizz.providers.notion_http import NotionClient, NotionRefused, NotionUnsure
from tests.support.notion import TOKEN, Clock, FakeNotion, Fault, HangUp, Refused, Request
from tests.support.ollama import NOBODY


@pytest.fixture
def notion() -> Iterator[FakeNotion]:
    with FakeNotion() as notion:
        yield notion


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(notion: FakeNotion, clock: Clock) -> Iterator[NotionClient]:
    made = NotionClient(TOKEN, base_url=notion.url, timer=clock)
    yield made
    made.close()


def times(count: int, error: Exception) -> Fault:
    """Fails so many requests in the same way."""
    left = [error] * count

    def fault(_: Request) -> Exception | None:
        return left.pop() if left else None

    return fault


def source(client: NotionClient, notion: FakeNotion) -> dict[str, Any]:
    return client.call("GET", f"/data_sources/{notion.add_source().id}")


def test_requests_are_spread_over_time(client: NotionClient, notion: FakeNotion, clock: Clock) -> None:
    for _ in range(6):
        source(client, notion)
    assert clock.waits == pytest.approx([0.4] * 5)
    clock.seconds += 60
    source(client, notion)
    assert len(clock.waits) == 5


def test_it_waits_as_long_as_notion_says(client: NotionClient, notion: FakeNotion, clock: Clock) -> None:
    notion.before = times(2, Refused(429, "rate_limited", "Slow down.", Retry_After="7"))
    assert source(client, notion)["object"] == "data_source"
    assert clock.waits == [7, 7]
    assert len(notion.requests) == 3


@pytest.mark.parametrize("error", [Refused(502, "bad_gateway", ""), Refused(503, "", "", Retry_After="x"), HangUp()])
def test_what_can_be_asked_again_is_asked_again_after_longer_and_longer_pauses(
    client: NotionClient, notion: FakeNotion, clock: Clock, error: Exception
) -> None:
    notion.before = times(4, error)
    source(client, notion)
    assert clock.waits == pytest.approx([0.5, 1, 2, 4])
    notion.before = times(99, error)
    clock.seconds += 1
    with pytest.raises(ProviderFault, match=r"Notion .* to GET /data_sources/.* after 5 attempts"):
        source(client, notion)


def test_whoever_has_waited_in_vain_does_not_wait_again_before_notion_is_back(
    client: NotionClient, notion: FakeNotion, clock: Clock
) -> None:
    notion.before = times(6, HangUp())
    with pytest.raises(ProviderFault, match="after 5 attempts"):
        source(client, notion)
    before = len(clock.waits)
    clock.seconds += 1
    with pytest.raises(ProviderFault, match="gave no answer"):
        source(client, notion)
    assert len(clock.waits) == before
    source(client, notion)
    notion.before = times(4, HangUp())
    source(client, notion)


def test_a_wait_of_many_minutes_is_left_to_the_caller(client: NotionClient, notion: FakeNotion, clock: Clock) -> None:
    notion.before = times(1, Refused(429, "rate_limited", "Slow down.", Retry_After="900"))
    with pytest.raises(ProviderFault, match="come back in 900 seconds"):
        source(client, notion)
    assert clock.waits == []


@pytest.mark.parametrize("error", [Refused(502, "bad_gateway", ""), HangUp()])
def test_what_may_have_been_done_is_not_sent_twice(client: NotionClient, notion: FakeNotion, error: Exception) -> None:
    notion.after = times(1, error)
    with pytest.raises(NotionUnsure, match="it may have been done"):
        client.call("POST", "/pages", _page(notion), repeatable=False)
    assert len(notion.requests) == 1


def test_what_was_surely_not_done_is_sent_again(client: NotionClient, notion: FakeNotion) -> None:
    notion.before = times(1, Refused(409, "conflict_error", "Conflict occurred while saving."))
    assert client.call("POST", "/pages", _page(notion), repeatable=False)["object"] == "page"


def _page(notion: FakeNotion) -> dict[str, Any]:
    return {"parent": {"data_source_id": notion.add_source().id}, "properties": {}}


def test_what_notion_refuses_is_said_in_its_words(client: NotionClient, notion: FakeNotion) -> None:
    with pytest.raises(NotionRefused, match=r"answered 404 object_not_found to GET /data_sources/x: Could not find"):
        client.call("GET", "/data_sources/x")
    with pytest.raises(NotionRefused, match=r"400 invalid_request_url"):
        client.call("GET", "/users")
    assert len(notion.requests) == 2


def test_nobody_listening_is_said(clock: Clock) -> None:
    client = NotionClient(TOKEN, base_url=NOBODY, timer=clock, max_retries=0)
    with pytest.raises(ProviderFault, match="cannot be reached"):
        client.call("POST", "/pages", {}, repeatable=False)


def test_a_connection_that_was_idle_for_long_is_made_anew(
    client: NotionClient, notion: FakeNotion, clock: Clock
) -> None:
    source(client, notion)
    clock.seconds += 3600
    notion._server.hang_up()
    source(client, notion)
    assert len(notion.requests) == 2


def test_a_wrong_token_is_not_repeated_to_anybody(notion: FakeNotion, clock: Clock) -> None:
    client = NotionClient("ntn_wrong", base_url=notion.url, timer=clock)
    with pytest.raises(NotionRefused, match="does not accept the token") as raised:
        source(client, notion)
    assert "ntn_wrong" not in str(raised.value)
    client.close()


@pytest.mark.parametrize("token", ["", "two words", "new\nline", "sécret"])
def test_a_token_that_cannot_be_one_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(ConfigurationError, match="must be one word of ASCII") as raised:
        NotionClient(token)
    assert not token or token not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["http://api.notion.com/v1", "ftp://x", "https://", "https://me:pw@x/v1", "http://[", "x"]
)
def test_a_token_is_sent_over_tls_or_not_at_all(url: str) -> None:
    with pytest.raises(ConfigurationError, match="address of Notion"):
        NotionClient(TOKEN, base_url=url)
