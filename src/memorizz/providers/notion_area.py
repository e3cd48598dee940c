"""One data source of Notion: its properties, reading its pages as a whole, and writing them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from memorizz.errors import ConfigurationError, ProviderFault
from memorizz.providers.notion_http import NotionClient, NotionRefused
from memorizz.providers.notion_pages import CONTENT, ID, METADATA, PROPERTIES, TITLE, TYPE, Row, read_page
from memorizz.taxonomy import MemoryType

PAGE_SIZE: Final = 100
"""Rows a query brings, and ids one can ask for."""

# Notion may stop after so many pieces, and then has the rest elsewhere.
_MAYBE_CUT: Final = 25
_INIT_PROPERTIES: Final = {
    name: {kind: {"options": [{"name": store.value} for store in MemoryType]} if name == TYPE else {}}
    for name, kind in PROPERTIES.items()
}


class Area:
    """The pages of a data source. ``properties`` are the ids of the managed properties by their first names."""

    def __init__(self, client: NotionClient, data_source_id: str, max_query_pages: int) -> None:
        self._client = client
        self._id = data_source_id
        self._max_query_pages = max_query_pages
        self.properties: dict[str, str] = {}

    @property
    def _names(self) -> dict[str, str]:
        return {id: name for name, id in self.properties.items()}

    def learn(self, known: Mapping[str, str], *, make: bool) -> None:
        """Find the managed properties, by the ``known`` ids or by name; with ``make`` add those that are missing.

        Raises:
            ConfigurationError: There is no such data source, it lacks properties, or it is somebody's for other things.
        """
        found = self._found(known)
        missing = [name for name in PROPERTIES if name not in found]
        if missing and not make:
            raise ConfigurationError(
                f"the Notion data source {self._id} has no property {missing[0]!r}: there is no memory to read from"
            )
        if missing:
            if len(missing) == len(PROPERTIES) - 1 and self._ask({"page_size": 1}).get("results"):
                raise ConfigurationError(
                    f"the Notion data source {self._id} holds pages of another kind; `memorizz notion init` makes one"
                )
            self._client.call(
                "PATCH", f"/data_sources/{self._id}", {"properties": {name: _INIT_PROPERTIES[name] for name in missing}}
            )
            found = self._found(known)
        self.properties = found

    def pages(self, store: MemoryType | None = None) -> Iterator[Row]:
        """Every page, or every page of a store."""
        condition = None if store is None else self._of_store(store)
        return self._read(condition)

    def first_pages(self) -> tuple[list[Row], bool]:
        """The first pages, and whether these are all."""
        answer = self._ask({"page_size": PAGE_SIZE, "sorts": _OLDEST_FIRST})
        return [self._row(page) for page in answer["results"]], not answer.get("has_more") and not _is_cut(answer)

    def with_ids(self, store: MemoryType, ids: Iterable[str]) -> Iterator[Row]:
        """The pages of these records, at most 100 of them. Notion may compare less exactly than one would."""
        asked = [{"property": self.properties[ID], "rich_text": {"equals": id}} for id in ids]
        condition = {"and": [self._of_store(store), {"or": asked}]}
        return self._read(condition)

    def page(self, page_id: str) -> Row | None:
        """The page of that id, unless it is in the trash, elsewhere or nowhere."""
        try:
            page = self._client.call("GET", f"/pages/{page_id}")
        except NotionRefused as error:
            if error.status == 404:
                return None
            raise
        if page.get("in_trash") or page.get("archived"):
            return None
        parent = page.get("parent") or {}
        return self._row(page) if _same_id(parent.get("data_source_id"), self._id) else None

    def create(self, values: Mapping[str, Any]) -> str:
        """Add a page and return its id.

        Raises:
            NotionUnsure: It may have been added.
        """
        parent = {"type": "data_source_id", "data_source_id": self._id}
        body = {"parent": parent, "properties": self._by_id(values)}
        return str(self._valid("POST", "/pages", body, repeatable=False)["id"])

    def update(self, page_id: str, values: Mapping[str, Any]) -> bool:
        """Set the properties of a page; whether it is there and not in the trash."""
        try:
            page = self._valid("PATCH", f"/pages/{page_id}", {"properties": self._by_id(values)})
        except NotionRefused as error:
            if _is_gone(error):
                return False
            raise
        return not (page.get("in_trash") or page.get("archived"))

    def trash(self, page_id: str) -> None:
        """Move a page to the trash; one that is there already, or nowhere, stays so."""
        try:
            self._client.call("PATCH", f"/pages/{page_id}", {"in_trash": True})
        except NotionRefused as error:
            if not _is_gone(error):
                raise

    def _found(self, known: Mapping[str, str]) -> dict[str, str]:
        try:
            source = self._client.call("GET", f"/data_sources/{self._id}")
        except NotionRefused as error:
            if error.status == 404:
                raise ConfigurationError(
                    f"there is no Notion data source {self._id} to read from, or it is not shared with the integration"
                ) from None
            if error.status in (400, 401, 403):
                raise ConfigurationError(str(error)) from None
            raise
        by_id = {value["id"]: value for value in source["properties"].values()}
        found = {}
        for name, kind in PROPERTIES.items():
            value = by_id.get(known.get(name, "")) or source["properties"].get(name)
            if name == TITLE:
                value = next(value for value in by_id.values() if value["type"] == "title")
            if value is None:
                continue
            if value["type"] != kind:
                raise ConfigurationError(
                    f"the property {name!r} of the Notion data source {self._id} must be of type {kind} "
                    f"(it is {value['type']})"
                )
            found[name] = value["id"]
        return found

    def _read(self, condition: dict[str, Any] | None) -> Iterator[Row]:
        """All pages that fulfil a condition, in windows: a query ends after so many rows, however many there are."""
        seen: set[str] = set()
        since: str | None = None
        while True:
            body = _body(condition, since)
            fresh = 0
            for number in range(1, self._max_query_pages + 1):
                try:
                    answer = self._ask(body)
                except NotionRefused as error:
                    if "start_cursor" not in body or error.status != 400 or "cursor" not in str(error):
                        raise
                    break
                for page in answer["results"]:
                    if page["id"] not in seen:
                        seen.add(page["id"])
                        fresh += 1
                        yield self._row(page)
                    since = page["created_time"]
                cursor = answer.get("next_cursor")
                if answer.get("has_more") and cursor and number < self._max_query_pages:
                    body = {**body, "start_cursor": cursor}
                    continue
                if not answer.get("has_more") and not _is_cut(answer):
                    return
                break
            if not fresh:
                raise ProviderFault(
                    f"the Notion data source {self._id} has more pages made within one minute ({since}) than one query "
                    "brings; they cannot all be read"
                )

    def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._valid("POST", f"/data_sources/{self._id}/query", body)

    def _valid(self, method: str, path: str, body: dict[str, Any], *, repeatable: bool = True) -> dict[str, Any]:
        """The answer to a request that names properties; when one of them is gone, that is said."""
        try:
            return self._client.call(method, path, body, repeatable=repeatable)
        except NotionRefused as error:
            if error.status != 400 or _is_gone(error) or not self.properties:
                raise
            missing = sorted(self.properties.keys() - self._found(self.properties).keys())
            if not missing:
                raise
            raise ProviderFault(
                f"the property {missing[0]!r} was removed from the Notion data source {self._id}; "
                "`memorizz notion repair` adds it again"
            ) from None

    def _of_store(self, store: MemoryType) -> dict[str, Any]:
        return {"property": self.properties[TYPE], "select": {"equals": store.value}}

    def _by_id(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {self.properties[name]: value for name, value in values.items()}

    def _row(self, page: dict[str, Any]) -> Row:
        try:
            for value in page["properties"].values():
                texts = value.get("rich_text")
                is_long = value["id"] in (self.properties[CONTENT], self.properties[METADATA])
                if is_long and texts is not None and len(texts) == _MAYBE_CUT:
                    value["rich_text"] = self._whole(page["id"], value["id"])
            return read_page(page, self._names)
        except (KeyError, TypeError, AttributeError) as error:
            raise ProviderFault(f"Notion answered a page that cannot be understood ({error!r})") from None

    def _whole(self, page_id: str, property_id: str) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        cursor = ""
        while True:
            more = f"&start_cursor={cursor}" if cursor else ""
            path = f"/pages/{page_id}/properties/{property_id}?page_size={PAGE_SIZE}{more}"
            answer = self._client.call("GET", path)
            made += [item["rich_text"] for item in answer["results"]]
            cursor = answer.get("next_cursor") or ""
            if not answer.get("has_more"):
                return made


_OLDEST_FIRST: Final = [{"timestamp": "created_time", "direction": "ascending"}]


def _body(condition: dict[str, Any] | None, since: str | None) -> dict[str, Any]:
    conditions = [condition] if condition else []
    if since is not None:
        # Times are of whole minutes: the last one is read again.
        conditions.append({"timestamp": "created_time", "created_time": {"on_or_after": since}})
    body: dict[str, Any] = {"page_size": PAGE_SIZE, "sorts": _OLDEST_FIRST}
    if len(conditions) > 1:
        inner = conditions[0]["and"] if "and" in conditions[0] else conditions[:1]
        body["filter"] = {"and": [*inner, conditions[1]]}
    elif conditions:
        body["filter"] = conditions[0]
    return body


def _is_cut(answer: Mapping[str, Any]) -> bool:
    """Whether Notion says itself that it left rows out."""
    status = answer.get("request_status")
    return isinstance(status, dict) and status.get("type") == "incomplete"


def _is_gone(error: NotionRefused) -> bool:
    """Whether a page is nowhere, or in the trash."""
    said = str(error).lower()
    return error.status == 404 or (error.status == 400 and ("archived" in said or "trash" in said))


def _same_id(one: Any, other: str) -> bool:
    return isinstance(one, str) and one.replace("-", "") == other.replace("-", "")


def init_database(client: NotionClient, parent_page_id: str, title: str) -> dict[str, str]:
    """Make a database with the managed properties below a page; return its ids and address.

    Raises:
        ConfigurationError: There is no such page, or it is not shared with the integration.
    """
    body = {
        "parent": {"type": "page_id", "page_id": parent_page_id},
        "title": [{"type": "text", "text": {"content": title}}],
        "initial_data_source": {"properties": _INIT_PROPERTIES},
    }
    try:
        made = client.call("POST", "/databases", body, repeatable=False)
    except NotionRefused as error:
        raise ConfigurationError(str(error)) from None
    return {
        "root_page_id": parent_page_id,
        "database_id": str(made["id"]),
        "data_source_id": str(made["data_sources"][0]["id"]),
        "url": str(made.get("url") or ""),
    }
