"""Export and import over HTTP, as the page and as programs do it."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from memorizz.memory_archive import MAX_BYTES, MemoryArchive, archive_json, seal_archive, validate_archive
from memorizz.portal.transfer import LARGEST_BODY
from memorizz.taxonomy import MemoryType
from tests.memorizz.portal import stores
from tests.memorizz.portal.conftest import Start, on
from tests.memorizz.portal.support import EVOLUTION, EXPORT, FORM, IMPORT, JSON, Portal
from tests.memorizz.support import VALID, archive

TYPES = ("knowledge_base", "conversation_memory", "summaries")
KEEL = {"agent_id": "agent-keel"}


def exported(portal: Portal, query: str = "") -> Any:
    answer = portal.ask("GET", EXPORT + (query and f"?{query}"))
    assert answer.status == 200, answer
    return validate_archive(answer.json)


def comparable(made: Any) -> Any:
    """An archive but for what says when it was made."""
    copied = copy.deepcopy(made)
    del copied["integrity"], copied["manifest"]["created_at"]
    return copied


@pytest.fixture(scope="module")
def provided(place: Path, reference: Portal) -> Any:
    """The same folder as the program sees it."""
    with stores.folder(place / "reference") as provider:
        yield MemoryArchive(provider)


def test_an_export_is_a_download_with_its_count(reference: Portal) -> None:
    answer = reference.ask("GET", EXPORT)
    assert answer.headers["content-type"] == "application/json"
    name = r'attachment; filename="memory-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.memorizz\.json"'
    assert re.fullmatch(name, answer.headers["content-disposition"])
    assert answer.headers["x-memorizz-records"] == str(answer.json["manifest"]["record_count"]) != "0"
    assert answer.body.decode() == archive_json(answer.json)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", {}),
        ("agent_id=&memory_id=", {}),
        ("agent_id=agent-keel", KEEL),
        ("agent_id=%20agent-keel%20", KEEL),
        ("agent_id=agent-keel&include_delegates=false", {**KEEL, "include_delegates": False}),
        ("agent_id=agent-keel&include_history=false", {**KEEL, "include_history": False}),
        ("agent_id=agent-keel&include_context=false", {**KEEL, "include_context": False}),
        ("agent_id=agent-keel&include_context=true&include_context=false", {**KEEL, "include_context": False}),
        ("agent_id=agent-keel&include_context=false&include_context=true", KEEL),
        ("agent_id=other&agent_id=agent-keel", KEEL),
        ("memory_id=ns-keel", {"memory_id": "ns-keel"}),
        ("memory_id=nothing", {"memory_id": "nothing"}),
        ("&".join(f"memory_types={name}" for name in TYPES), {"memory_types": TYPES}),
        (f"memory_types={','.join(TYPES)}", {"memory_types": TYPES}),
        ("memory_types=summaries,%20knowledge_base&memory_types=conversation_memory,", {"memory_types": TYPES}),
        ("memory_types=summaries&memory_types=summaries", {"memory_types": ("summaries",)}),
        ("memory_types=LONG_TERM_MEMORY", {"memory_types": ("knowledge_base",)}),
        (f"memory_types={','.join(MemoryType)}", {}),
    ],
)
def test_an_export_is_what_the_program_exports(
    reference: Portal, provided: MemoryArchive, query: str, options: dict[str, Any]
) -> None:
    if "memory_types" in options:
        options = {**options, "memory_types": [MemoryType(name) for name in options["memory_types"]]}
    assert comparable(exported(reference, query)) == comparable(provided.export(**options))


def test_the_form_of_the_page_exports_everything_that_it_says(reference: Portal, provided: MemoryArchive) -> None:
    page = reference.page("/memory-transfer?agent_id=agent-keel&memory_id=ns-keel")
    form = next(form for form in page.forms if form.action == EXPORT)
    fields = [*form.fields, ("agent_id", "agent-keel")]
    assert ("memory_id", "ns-keel") in fields
    made = exported(reference, urlencode(fields))
    assert comparable(made) == comparable(provided.export(agent_id="agent-keel", memory_id="ns-keel"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("agent_id=nobody", "there is no agent 'nobody'"),
        ("agent_id=%00%ff", "there is no agent"),
        ("agent_id=agent-keel&agent_id=", "ok"),
        ("memory_types=", "choose at least one memory type"),
        ("memory_types=,%20,", "choose at least one memory type"),
        ("memory_types=dreams", "unknown memory type 'dreams'"),
        ("memory_types=Personas", "unknown memory type 'Personas'"),
        ("memory_types=personas&memory_types=%3Cb%3E", "unknown memory type '<b>'"),
        *(
            (f"include_{name}={value}", f"include_{name} must be true or false")
            for name, value in (("delegates", "1"), ("history", "True"), ("context", ""), ("context", "yes"))
        ),
        ("include_history=true&include_history=x", "include_history must be true or false (got 'x')"),
    ],
)
def test_an_export_that_cannot_be_is_refused(reference: Portal, query: str, message: str) -> None:
    if message == "ok":
        exported(reference, query)
        return
    said = reference.refused(f"{EXPORT}?{query}")
    assert message in said
    assert "\n" not in said


def test_an_agent_of_any_id_can_be_exported_by_the_link_of_its_playground(wild: Portal) -> None:
    for name in stores.WILD:
        id = stores.wild_id(name)
        if name != "long":
            made = exported(wild, f"agent_id={quote(id)}&include_delegates=false&memory_types=agents")
            assert [row["id"] for row in made["stores"]["agents"]] == [id]
        assert stores.SECRET not in json.dumps(made)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.name.partition(".")[0])
def test_every_archive_of_the_reference_program_can_be_previewed(reference: Portal, path: Path) -> None:
    given = path.read_bytes()
    count = json.loads(given)["manifest"]["record_count"]
    copied = reference.restore(given, "id_strategy=new").json
    assert (copied["ok"], copied["planned"], copied["imported"]) == (True, count, 0)
    skipped = reference.restore(given, "conflict=skip").json
    assert skipped["ok"]
    assert skipped["dry_run"]
    assert skipped["planned"] + skipped["skipped"] == count


def test_a_preview_writes_nothing_and_an_import_writes_what_was_previewed(start: Start, file: Path) -> None:
    portal = start(*on(file))
    given = archive("agent_coordinator")
    before = stores.state(file)
    previews = [portal.restore(given, f"dry_run=true&id_strategy={how}").json for how in ("preserve", "new")]
    assert stores.state(file) == before
    assert exported(portal)["manifest"]["record_count"] == 0
    done = portal.restore(given, "dry_run=false")
    assert done.status == 200
    assert {**done.json, "dry_run": True, "imported": 0} == previews[0]
    assert done.json["imported"] == 52
    again = exported(portal)
    kept = {store: [row["id"] for row in rows] for store, rows in again["stores"].items()}
    assert kept == {store: [row["id"] for row in rows] for store, rows in given["stores"].items()}
    assert "/agents/agent-keel/playground" in portal.page("/agents").links


def test_a_preview_on_a_folder_leaves_every_byte(start: Start, folder: Path) -> None:
    portal = start(*on(folder))
    before = stores.state(folder)
    for query in ("", "conflict=skip", "conflict=replace", "id_strategy=new"):
        assert portal.restore(archive("agent_coordinator"), query).status == 200
    assert portal.restore({"archive": archive("user_ana")}).status == 200
    assert stores.state(folder) == before


def test_both_forms_of_the_request_do_the_same(start: Start, file: Path) -> None:
    portal = start(*on(file))
    given = archive("project_ns_plover")
    for options in (
        {},
        {"dry_run": True},
        {"conflict": "skip"},
        {"conflict": "replace", "target_memory_id": "ns-elsewhere"},
        {"conflict": None, "target_memory_id": None, "dry_run": None},
    ):
        query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in options.items()}
        bare = portal.restore(given, urlencode({name: value for name, value in query.items() if value is not None}))
        wrapped = portal.restore({"archive": given, **options})
        assert (bare.status, bare.json) == (wrapped.status, wrapped.json) == (200, bare.json)
    assert portal.restore({"archive": given, "dry_run": False, "target_memory_id": "ns-elsewhere"}).json["ok"]
    rows = exported(portal)["stores"]["conversation_memory"]
    assert {row["data"]["memory_id"] for row in rows} == {"ns-elsewhere"}


def test_new_ids_make_an_independent_copy(start: Start, folder: Path) -> None:
    portal = start(*on(folder))
    given, before = archive("agent_plain"), exported(portal)["manifest"]["record_count"]
    preview = portal.restore(given, "id_strategy=new").json
    done = portal.restore(given, "id_strategy=new&dry_run=false").json
    assert done["ok"]
    assert done["conflicts"] == []
    assert set(done["id_map"]) == set(preview["id_map"]) >= {"agent-keel", "agent-plover"}
    assert set(done["id_map"].values()).isdisjoint(done["id_map"])
    assert exported(portal)["manifest"]["record_count"] == before + given["manifest"]["record_count"]
    portal.page(f"/agents/{done['id_map']['agent-keel']}/playground")


def test_conflicts_are_listed_by_a_preview_and_refuse_an_import(start: Start, folder: Path) -> None:
    portal = start(*on(folder))
    given = archive("types_kb_conv")
    before = stores.state(folder)
    preview = portal.restore(given)
    assert preview.status == 200
    assert not preview.json["ok"]
    found = {(row["memory_type"], row["id"]) for row in preview.json["conflicts"]}
    there = {(store, row["id"]) for store, rows in exported(portal)["stores"].items() for row in rows}
    assert found == {(store, row["id"]) for store, rows in given["stores"].items() for row in rows} & there
    assert found
    assert "conflict" in portal.not_restored(given, "dry_run=false", 409)
    assert portal.not_restored({"archive": given, "dry_run": False, "conflict": "error"}, status=409)
    assert stores.state(folder) == before


def test_skip_keeps_what_is_there_and_replace_does_not(start: Start, file: Path) -> None:
    portal = start(*on(file))
    given = archive("types_kb_conv")
    assert portal.restore(given, "dry_run=false").json["ok"]
    id = given["stores"]["knowledge_base"][0]["id"]
    given["stores"]["knowledge_base"][0]["data"]["content"] = "Changed since."
    given = seal_archive(given)

    def content() -> str:
        rows = exported(portal)["stores"]["knowledge_base"]
        return str(next(row["data"]["content"] for row in rows if row["id"] == id))

    before = content()
    skipped = portal.restore(given, "dry_run=false&conflict=skip").json
    assert (skipped["ok"], skipped["imported"], skipped["skipped"]) == (True, 0, given["manifest"]["record_count"])
    assert content() == before != "Changed since."
    replaced = portal.restore(given, "dry_run=false&conflict=replace").json
    assert (replaced["ok"], replaced["imported"]) == (True, given["manifest"]["record_count"])
    assert content() == "Changed since."


def test_numbers_arrive_as_they_were_written(start: Start, file: Path) -> None:
    numbers = {
        "big": 2**53 + 1,
        "bigger": -(10**40) - 1,
        "float": 1.0,
        "integer": 1,
        "small": 5e-324,
        "large": 1e300,
        "list": [1.0, 1, 9007199254740993],
        "text": "1.0 😀 \u2028 \x7f é",
    }
    given = archive("types_kb_conv")
    row = given["stores"]["knowledge_base"][0]
    row["data"] |= numbers
    portal = start(*on(file))
    text = json.dumps(seal_archive(given))
    assert portal.restore(text.encode(), "dry_run=false").json["ok"]
    kept = next(one["data"] for one in exported(portal)["stores"]["knowledge_base"] if one["id"] == row["id"])
    assert {name: repr(kept[name]) for name in numbers} == {name: repr(value) for name, value in numbers.items()}
    page = portal.page(f"/memory/knowledge-base/record?id={row['id']}")
    assert "9007199254740993" in page.text
    assert f"-{10**40 + 1}" in page.text
    assert portal.restore({"archive": exported(portal)}, "").json["conflicts"]


def test_a_byte_order_mark_and_spaces_around_do_no_harm(wild: Portal) -> None:
    text = json.dumps(archive("empty_store")).encode()
    assert wild.restore(b"\xef\xbb\xbf \n" + text + b"\r\n ").status == 200


EMPTY = json.dumps(archive("empty_store"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not valid JSON"),
        (b" ", "not valid JSON"),
        (b"{", "not valid JSON"),
        (EMPTY[:-1].encode(), "not valid JSON"),
        (f"{EMPTY}{EMPTY}".encode(), "not valid JSON"),
        (EMPTY.replace('"', "'").encode(), "not valid JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b"1" * 5000, "not valid JSON"),
        (EMPTY.encode("utf-16"), "not valid UTF-8"),
        (b'"\xff"', "not valid UTF-8: byte 0xff at 1"),
        (b'"\xed\xa0\x80"', "not valid UTF-8"),
        (b'{"format": 1, "format": 2}', "'format' twice"),
        (EMPTY.replace('"version": 1', '"version": 1, "version": 1').encode(), "'version' twice"),
        (b'{"archive": {}, "archive": {}}', "'archive' twice"),
        (b"[]", "it must be a JSON object"),
        (b"null", "it must be a JSON object"),
        (b'"archive"', "it must be a JSON object"),
        (b'{"archive": null}', "it must be a JSON object"),
        (b'{"archive": [1]}', "it must be a JSON object"),
        (b"{}", "format"),
        (b'{"archive": {}}', "format"),
        (EMPTY.replace('"version": 1', '"version": 1.0').encode(), "version"),
        (EMPTY.replace('"version": 1', '"version": true').encode(), "version"),
        (EMPTY.replace('"version": 1', '"version": 2').encode(), "version"),
        (EMPTY.replace('"record_count": 0', '"record_count": 1').encode(), ""),
        (EMPTY.replace('"record_count": 0', '"record_count": NaN').encode(), ""),
        (EMPTY.replace('"record_count": 0', '"record_count": 1e999').encode(), ""),
    ],
)
def test_a_body_that_is_no_archive_is_refused_in_one_sentence(wild: Portal, body: bytes, message: str) -> None:
    for query in ("", "dry_run=false"):
        said = wild.not_restored(body, query)
        assert message in said
        assert "\n" not in said
        assert len(said) < 500


def test_a_changed_archive_is_refused_and_nothing_is_written(start: Start, file: Path) -> None:
    portal = start(*on(file))
    before = stores.state(file)
    given = archive("agent_plain")
    given["stores"]["knowledge_base"][0]["data"]["content"] += "!"
    for query in ("", "dry_run=false"):
        assert "checksum" in portal.not_restored(given, query)
    integrity = archive()["integrity"]["digest"]
    for digest in (integrity.upper(), integrity[:-1], "", None, 5):
        assert portal.not_restored({**archive(), "integrity": {"algorithm": "sha256", "digest": digest}})
    assert stores.state(file) == before


@pytest.mark.parametrize("before", ['"content": "', '"memory_id": "', '"warnings": ["', '"id": "', '"manifest": {"'])
def test_lone_surrogates_are_refused(wild: Portal, before: str) -> None:
    given = json.dumps(archive("types_kb_conv"))
    assert before in given
    for half in (r"\ud83d", r"\udc00 "):
        text = given.replace(before, f"{before}{half}", 1)
        assert "lone surrogate" in wild.not_restored(text.encode())
        assert "lone surrogate" in wild.not_restored(f'{{"archive": {text}}}'.encode())


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("dry_run=False", "dry_run must be true or false (got 'False')"),
        ("dry_run=0", "dry_run must be true or false"),
        ("dry_run=", "dry_run must be true or false"),
        ("dry_run=true&dry_run=no", "dry_run must be true or false (got 'no')"),
        ("conflict=overwrite", "conflict"),
        ("conflict=Skip", "conflict"),
        ("id_strategy=fresh", "id_strategy"),
        ("reembed=true", "there is no option 'reembed'"),
        ("user_id=ana", "there is no option 'user_id'"),
        ("archive=x", "there is no option 'archive'"),
        ("dryrun=false", "there is no option 'dryrun'"),
        ("%00=x", "there is no option"),
    ],
)
def test_an_option_that_is_none_is_refused(wild: Portal, query: str, message: str) -> None:
    assert message in wild.not_restored(archive("empty_store"), query)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"dry_run": value}, "dry_run must be true or false") for value in ("false", 0, 1, [], {}, "")),
        *(({"conflict": value}, "conflict must be a text") for value in (5, True, [], {})),
        ({"conflict": ""}, "conflict"),
        ({"conflict": "x"}, "conflict"),
        ({"id_strategy": ["new"]}, "id_strategy must be a text"),
        ({"id_strategy": "NEW"}, "id_strategy"),
        ({"target_memory_id": 5}, "target_memory_id must be a text"),
        ({"reembed": True}, "there is no option 'reembed'"),
        ({"user_id": None}, "there is no option 'user_id'"),
        ({"": 1}, "there is no option ''"),
    ],
)
def test_an_option_in_the_body_that_is_none_is_refused(wild: Portal, options: dict[str, Any], message: str) -> None:
    assert message in wild.not_restored({"archive": archive("empty_store"), **options})


def test_several_namespaces_do_not_become_one(wild: Portal) -> None:
    assert wild.not_restored(archive("agent_coordinator"), "target_memory_id=ns-one")


def test_the_kind_of_the_body_does_not_matter_to_programs(wild: Portal) -> None:
    for kind in ("text/plain", "application/octet-stream", FORM["Content-Type"]):
        answer = wild.ask("POST", IMPORT, EMPTY.encode(), {"Content-Type": kind})
        assert answer.status == 200, kind


def test_a_body_of_the_limit_is_read_and_one_byte_more_is_413(wild: Portal) -> None:
    assert LARGEST_BODY == MAX_BYTES + 65_536
    full = EMPTY.encode() + b" " * (LARGEST_BODY - len(EMPTY.encode()))
    assert wild.restore(full).status == 200
    said = wild.not_restored(full + b" ", status=413)
    assert str(LARGEST_BODY) in said


def test_a_body_that_says_it_is_too_large_is_413_before_it_is_sent(wild: Portal) -> None:
    for path, limit in ((IMPORT, LARGEST_BODY), ("/connect", 1 << 20), ("/memories/new", 1 << 20)):
        for size in (limit + 1, 10**15):
            connection = wild.connect()
            connection.putrequest("POST", path)
            for name, value in {**JSON, "Content-Length": str(size)}.items():
                connection.putheader(name, value)
            connection.endheaders()
            with connection.getresponse() as answer:
                assert answer.status == 413, path
            connection.close()


@pytest.mark.parametrize(("path", "limit"), [(IMPORT, LARGEST_BODY), ("/connect", 1 << 20)])
def test_a_body_in_chunks_is_read_to_the_limit_and_not_further(wild: Portal, path: str, limit: int) -> None:
    for more, status in ((0, 400), (1, 413)):
        connection = wild.connect()
        connection.putrequest("POST", path)
        for name, value in {**FORM, "Transfer-Encoding": "chunked"}.items():
            connection.putheader(name, value)
        connection.endheaders()
        left = limit + more
        while left:
            part = b" " * min(left, 1 << 20)
            connection.send(b"%x\r\n%s\r\n" % (len(part), part))
            left -= len(part)
        if not more:
            connection.send(b"0\r\n\r\n")
        with connection.getresponse() as answer:
            assert answer.status == status, path
        connection.close()


def read_only(start: Start, place: Path, how: str) -> Portal:
    """A portal that may not write, or one whose memory may not be written to."""
    if how == "portal":
        return start(*on(place), "--read-only")
    if how == "variable":
        return start(*on(place), MEMORIZZ_UI_READ_ONLY="1")
    portal = start("--no-connect")
    backend, path = on(place)[1::2]
    portal.done("/connect", {"backend": backend, "path": path, "read_only": "true"})
    return portal


@pytest.mark.parametrize("how", ["portal", "variable", "connection"])
@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_is_only_to_be_read_is_exported_and_previewed_but_not_written(
    start: Start, folder: Path, file: Path, kind: str, how: str
) -> None:
    place = {"folder": folder, "file": file}[kind]
    if kind == "file":
        with stores.sqlite(file) as provider:
            MemoryArchive(provider).import_archive(archive("agent_plain"), dry_run=False)
    portal = read_only(start, place, how)
    before = stores.state(place)
    for path in ("/", "/agents", "/agents/agent-keel/playground?tab=recall&q=water", "/memory/entity", EVOLUTION):
        assert "read-only" in portal.page(path).within("header")[0]
    assert "can be previewed, not applied" in portal.page("/memory-transfer").text
    assert exported(portal, "agent_id=agent-keel")["manifest"]["record_count"]
    given = archive("types_kb_conv")
    assert not portal.restore(given).json["ok"]
    for report in (portal.restore(given, "conflict=replace"), portal.restore({"archive": given, "id_strategy": "new"})):
        assert report.json["planned"] == given["manifest"]["record_count"]
        assert report.json["warnings"][-1].endswith("opened for reading only: nothing can be imported")
    for options in ({"dry_run": False}, {"dry_run": False, "id_strategy": "new"}):
        said = portal.not_restored({"archive": given, **options}, status=403)
        assert "read-only: an import can be previewed, not applied" in said
    assert portal.not_restored(given, "dry_run=false&conflict=replace", 403)
    assert stores.state(place) == before


def test_where_there_is_no_memory_pages_lead_to_the_connection_and_programs_are_told(start: Start) -> None:
    portal = start("--no-connect")
    for path in ("/", "/agents", "/memory", "/memory/personas", "/memory-transfer", EVOLUTION, "/agents/x/playground"):
        answer = portal.ask("GET", path)
        assert (answer.status, answer.headers["location"]) == (302, "/connect"), path
        assert portal.ask("HEAD", path).status == 302
    assert "no memory is connected" in portal.refused(EXPORT)
    assert "no memory is connected" in portal.not_restored(EMPTY.encode())
    assert "No memory is connected" in portal.page("/connect").text
    assert portal.refused("/memory/nothing", 404)


def test_importing_twice_at_once_imports_once(start: Start, file: Path) -> None:
    portal = start(*on(file))
    given = json.dumps(archive("agent_plain")).encode()
    connections = [portal.connect() for _ in range(4)]
    for connection in connections:
        connection.request("POST", f"{IMPORT}?dry_run=false", given, JSON)
    imported = []
    for connection in connections:
        with connection.getresponse() as answer:
            said = json.loads(answer.read())
            assert (answer.status, said.get("ok", False)) in ((200, True), (200, False), (409, False)), said
            imported.append(said.get("imported", 0))
        connection.close()
    assert sorted(imported) == [0, 0, 0, archive("agent_plain")["manifest"]["record_count"]]
    assert exported(portal)["manifest"]["record_count"] == max(imported)
