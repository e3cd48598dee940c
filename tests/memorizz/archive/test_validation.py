"""Every edit of the table of broken archives has its verdict, with a message that says what and where."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import jsonschema
import pytest

from memorizz.archive.files import parse
from memorizz.memory_archive import MemoryArchiveError, read_archive, seal_archive, validate_archive
from memorizz.taxonomy import TAXONOMY
from tests.memorizz.support import VALID, archive

Edit: TypeAlias = Callable[[dict[str, Any]], object]
SCHEMA = json.loads(files("memorizz").joinpath("schemas/memory-archive-v1.schema.json").read_text(encoding="utf-8"))
DIGEST = "0" * 64


def record(a: dict[str, Any], store: str = "knowledge_base", index: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = a["stores"][store][index]
    return found


def data(a: dict[str, Any], store: str = "knowledge_base") -> dict[str, Any]:
    found: dict[str, Any] = record(a, store)["data"]
    return found


def nested(levels: int) -> list[Any]:
    tree: list[Any] = [1]
    for _ in range(levels - 1):
        tree = [tree]
    return tree


def rename(a: dict[str, Any], id: str, store: str = "knowledge_base") -> None:
    record(a, store).update(id=id)
    data(a, store).update(_id=id, id=id)


def add(a: dict[str, Any], store: str, added: dict[str, Any]) -> None:
    a["stores"][store].append(added)
    a["manifest"]["record_count"] += 1
    a["manifest"]["counts"][store] += 1


# Each edit is sealed anew, so that nothing but its own rule refuses it. The last member says whether the packaged
# JSON schema takes it.
REFUSED: dict[str, tuple[Edit, str, bool]] = {
    "version_2": (lambda a: a.update(version=2), "version must be the integer 1 (got 2)", False),
    "version_float": (lambda a: a.update(version=1.0), "version must be the integer 1 (got 1.0)", True),
    "version_true": (lambda a: a.update(version=True), "version must be the integer 1 (got True)", False),
    "version_string": (lambda a: a.update(version="1"), "version must be the integer 1 (got '1')", False),
    "format_other": (lambda a: a.update(format="other"), "format must be 'memorizz.memory' (got 'other')", False),
    "format_missing": (lambda a: a.pop("format"), "format must be 'memorizz.memory' (got None)", False),
    "envelope_extra": (lambda a: a.update(extra=1), "archive has not the members", False),
    "taxonomy_wrong_category": (lambda a: a["taxonomy"].update(personas="short_term"), "taxonomy must map", False),
    "taxonomy_missing_store": (lambda a: a["taxonomy"].pop("tool_log"), "taxonomy must map", False),
    "taxonomy_extra_store": (lambda a: a["taxonomy"].update(x="y"), "taxonomy must map", False),
    "stores_missing_key": (lambda a: a["stores"].pop("tool_log"), "missing 'tool_log'", False),
    "stores_unknown_key": (lambda a: a["stores"].update(long_term_memory=[]), "unknown 'long_term_memory'", False),
    "store_not_array": (lambda a: a["stores"].update(tool_log={}), "tool_log must be an array (got an object)", False),
    "stores_not_object": (lambda a: a.update(stores=[]), "stores must be an object (got an array)", False),
    "record_not_object": (lambda a: a["stores"]["knowledge_base"].insert(0, "x"), "knowledge_base[0] must be", False),
    "record_extra_key": (lambda a: record(a).update(meta=1), "knowledge_base[0] must be an object of exactly", False),
    "record_missing_data": (lambda a: record(a).pop("data"), "knowledge_base[0] must be an object of exactly", False),
    "record_data_list": (lambda a: record(a).update(data=[]), "data must be an object (got an array)", False),
    "id_empty": (lambda a: rename(a, ""), "id must be a string of 1 to 512 characters (got '')", False),
    "id_integer": (lambda a: record(a).update(id=7), "id must be a string of 1 to 512 characters (got 7)", False),
    "id_513": (lambda a: rename(a, "x" * 513), "id must be a string of 1 to 512 characters", False),
    "duplicate_id": (lambda a: add(a, "knowledge_base", record(a)), "is there twice", True),
    "identity_data_id": (lambda a: data(a).update(id="other"), "data.id must equal the record's id", True),
    "identity_data__id": (lambda a: data(a).update(_id="other"), "data._id must equal the record's id", True),
    "identity_natural_agent": (lambda a: data(a, "agents").update(agent_id="other"), "agents[0]: agent_id must", True),
    "identity_natural_cache_key": (
        lambda a: data(a, "semantic_cache").update(cache_key="other"), "semantic_cache[0]: cache_key must equal", True,
    ),
    "identity_data_id_null": (lambda a: data(a).update(id=None), "data.id must equal the record's id", True),
    "count_record_count": (
        lambda a: a["manifest"].update(record_count=a["manifest"]["record_count"] + 1), "manifest.record_count", True,
    ),
    "count_record_count_float": (
        lambda a: a["manifest"].update(record_count=float(a["manifest"]["record_count"])), "manifest.record_count",
        True,
    ),
    "count_store": (lambda a: a["manifest"]["counts"].update(knowledge_base=99), "manifest.counts", True),
    "counts_missing_key": (lambda a: a["manifest"]["counts"].pop("tool_log"), "manifest.counts", False),
    **{
        f"manifest_missing_{name}": (lambda a, name=name: a["manifest"].pop(name), f"{name} is missing", False)
        for name in ("created_at", "memorizz_version", "source_provider", "scope", "includes", "warnings")
    },
    "manifest_created_at_wrong_type": (lambda a: a["manifest"].update(created_at=5), "must be a string", False),
    "manifest_warnings_string": (lambda a: a["manifest"].update(warnings="x"), "must be an array of strings", True),
    "manifest_list": (lambda a: a.update(manifest=[]), "manifest must be an object (got an array)", False),
    "depth_60": (lambda a: data(a).update(deep=nested(60)), "nested deeper than 64 levels", True),
    "depth_61": (lambda a: data(a).update(deep=nested(61)), "nested deeper than 64 levels", True),
}  # fmt: skip
ACCEPTED: dict[str, Edit] = {
    "nothing": dict,
    "taxonomy_reordered": lambda a: a.update(taxonomy=dict(reversed(a["taxonomy"].items()))),
    "id_512": lambda a: rename(a, "x" * 512),
    "same_id_two_stores": lambda a: (rename(a, "twin"), rename(a, "twin", "conversation_memory")),
    "identity_natural_null": lambda a: data(a, "personas").update(persona_id=None),
    "identity_ids_missing": lambda a: (data(a).pop("_id"), data(a).pop("id")),
    "count_store_float": lambda a: a["manifest"]["counts"].update(
        knowledge_base=float(a["manifest"]["counts"]["knowledge_base"])
    ),
    "manifest_missing_omitted_fields": lambda a: a["manifest"].pop("omitted_fields"),
    "manifest_missing_external_references": lambda a: a["manifest"].pop("external_references"),
    "manifest_extra": lambda a: a["manifest"].update(more={"x": 1}),
    "depth_58": lambda a: data(a).update(deep=nested(58)),
    "depth_59": lambda a: data(a).update(deep=nested(59)),
    "int_huge": lambda a: data(a).update(n=10**30),
    "int_2_53_plus_1": lambda a: data(a).update(n=9_007_199_254_740_993),
    "extra_data_field": lambda a: data(a).update(unheard_of={"x": [1.5]}),
    "credential_in_data": lambda a: data(a).update(api_key="made by hand"),
}


def written(tmp_path: Path, tree: Any) -> Path:
    path = tmp_path / "edited.memorizz.json"
    path.write_text(json.dumps(tree, ensure_ascii=False), encoding="utf-8")
    return path


def schema_takes(tree: Any) -> bool:
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(tree)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.name)
def test_a_valid_archive_is_read_and_its_digest_recomputed_equal(path: Path) -> None:
    found = read_archive(path)
    assert found == json.loads(path.read_text(encoding="utf-8"))
    assert seal_archive(found) == found
    assert schema_takes(found)


def unsealed(name: str, tree: dict[str, Any], edit: Edit) -> dict[str, Any]:
    edit(tree)
    # Trees that are nested too deeply cannot be sealed; they are refused before their seal is looked at.
    return tree if name.startswith("depth_6") else seal_archive(tree)


@pytest.mark.parametrize("name", REFUSED)
def test_an_edited_archive_is_refused_naming_the_rule(tmp_path: Path, name: str) -> None:
    edit, message, in_schema = REFUSED[name]
    tree = unsealed(name, archive(), edit)
    with pytest.raises(MemoryArchiveError) as caught:
        read_archive(written(tmp_path, tree))
    assert message in str(caught.value)
    with pytest.raises(MemoryArchiveError) as again:
        validate_archive(tree)
    assert str(again.value) == str(caught.value)
    assert schema_takes(tree) == in_schema


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_edit_that_breaks_no_rule_is_accepted(tmp_path: Path, name: str) -> None:
    tree = unsealed(name, archive(), ACCEPTED[name])
    assert read_archive(written(tmp_path, tree)) == tree
    assert schema_takes(tree)


INTEGRITY: dict[str, Edit] = {
    "bad_checksum_content": lambda a: data(a).update(content="edited"),
    "bad_digest_value": lambda a: a["integrity"].update(digest=DIGEST),
    "digest_uppercase": lambda a: a["integrity"].update(digest=a["integrity"]["digest"].upper()),
    "algorithm_md5": lambda a: a["integrity"].update(algorithm="md5"),
    "integrity_extra_key": lambda a: a["integrity"].update(extra=1),
    "integrity_missing": lambda a: a.pop("integrity"),
}


@pytest.mark.parametrize("name", INTEGRITY)
def test_an_archive_whose_checksum_does_not_fit_is_refused(tmp_path: Path, name: str) -> None:
    tree = archive()
    INTEGRITY[name](tree)
    with pytest.raises(MemoryArchiveError, match="the checksum does not fit"):
        read_archive(written(tmp_path, tree))


def test_the_version_is_looked_at_before_the_checksum_and_that_before_anything_else() -> None:
    tree = archive()
    tree["version"] = 2
    tree["stores"] = 5
    with pytest.raises(MemoryArchiveError, match="version"):
        validate_archive(tree)
    tree["version"] = 1
    with pytest.raises(MemoryArchiveError, match="checksum"):
        validate_archive(tree)


TEXT = json.dumps(archive(), ensure_ascii=False)
BYTES: dict[str, tuple[bytes, str]] = {
    "nan_literal": (TEXT.replace('"content": "', '"x": NaN, "content": "', 1).encode(), "no JSON number"),
    "infinity_literal": (TEXT.replace('"content": "', '"x": -Infinity, "content": "', 1).encode(), "no JSON number"),
    "overflow_float": (TEXT.replace('"content": "', '"x": 1e999, "content": "', 1).encode(), "no JSON number"),
    "truncated": (TEXT[: len(TEXT) // 2].encode(), "not valid JSON"),
    "empty_file": (b"", "not valid JSON"),
    "top_level_array": (b"[]", "it must be a JSON object (got an array)"),
    "top_level_null": (b"null", "it must be a JSON object (got null)"),
    "utf16": (TEXT.encode("utf-16"), "not valid UTF-8"),
    "latin1_byte": (TEXT.encode().replace(b'"content": "', b'"content": "\xe9', 1), "not valid UTF-8: byte 0xe9"),
    "duplicate_keys": (TEXT.replace('"content": "', '"content": "x", "content": "', 1).encode(), "'content' twice"),
    "trailing_garbage": (TEXT.encode() + b" {}", "not valid JSON"),
    "lone_surrogate": (TEXT.replace('"content": "', '"content": "\\ud800', 1).encode(), "lone surrogate U+D800"),
    "depth_100000": (b"[" * 100_000, "nested too deeply"),
    "int_5000_digits": (TEXT.replace('"content": "', f'"x": {"9" * 5000}, "content": "', 1).encode(), "not valid JSON"),
}


@pytest.mark.parametrize("name", BYTES)
def test_a_file_that_is_no_json_archive_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "broken.memorizz.json"
    path.write_bytes(BYTES[name][0])
    with pytest.raises(MemoryArchiveError) as caught:
        read_archive(path)
    assert BYTES[name][1] in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.encode() + b"\n\n",
        json.dumps(archive(), indent=4).replace("\n", "\r\n").encode(),
    ],
    ids=["utf8_bom", "trailing_newline", "crlf_indent"],
)
def test_white_space_escapes_and_a_byte_order_mark_change_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "dressed.memorizz.json"
    path.write_bytes(content)
    assert read_archive(path) == archive()


def test_an_archive_over_fifty_mebibytes_is_refused(tmp_path: Path) -> None:
    tree = archive("empty_store")
    tree["stores"]["knowledge_base"] = [{"id": "big", "data": {"content": "x" * 52_428_800}}]
    tree["manifest"].update(record_count=1, counts={**dict.fromkeys(TAXONOMY, 0), "knowledge_base": 1})
    sealed = seal_archive(tree)
    with pytest.raises(MemoryArchiveError, match="52428800"):
        read_archive(written(tmp_path, sealed))
    with pytest.raises(MemoryArchiveError, match="at most 52428800 are allowed"):
        validate_archive(sealed)
    assert read_archive(written(tmp_path, sealed), max_bytes=60_000_000) == sealed


def test_limits_can_be_raised_and_lowered() -> None:
    tree = archive()
    size = tree["manifest"]["record_count"]
    assert validate_archive(tree, max_records=size) == tree
    with pytest.raises(MemoryArchiveError, match=f"has {size} records; at most {size - 1} are allowed"):
        validate_archive(tree, max_records=size - 1)
    with pytest.raises(MemoryArchiveError, match="bytes in canonical form; at most 1000 are allowed"):
        validate_archive(tree, max_bytes=1_000)


def test_parsing_keeps_integers_of_any_size() -> None:
    assert parse(b'{"n":123456789012345678901234567890}') == {"n": 123456789012345678901234567890}
