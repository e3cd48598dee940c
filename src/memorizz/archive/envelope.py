"""The archive envelope, version 1: its parts, its seal and its validation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from memorizz.archive.canonical import canonical
from memorizz.archive.values import check_json, to_json
from memorizz.errors import MemoryArchiveError
from memorizz.taxonomy import ID_FIELDS, TAXONOMY

FORMAT: Final = "memorizz.memory"
VERSION: Final = 1
MAX_BYTES: Final = 50 * 1024 * 1024
MAX_RECORDS: Final = 100_000
MAX_ID_CHARACTERS: Final = 512
ENVELOPE: Final = ("format", "version", "taxonomy", "manifest", "stores", "integrity")
_MANIFEST: Final = ("created_at", "memorizz_version", "source_provider", "scope", "includes", "warnings")

Archive: TypeAlias = dict[str, Any]


def seal_archive(archive: Mapping[str, Any]) -> Archive:
    """A copy of ``archive`` with the integrity that fits its contents; what was there before is replaced.

    Raises:
        MemoryArchiveError: A value has no JSON form.
    """
    copy = to_json(archive)
    if not isinstance(copy, dict):
        raise MemoryArchiveError("an archive is a JSON object")
    copy.pop("integrity", None)
    return {**copy, "integrity": _integrity(_canonical_parts(copy))}


def validate_archive(
    archive: Mapping[str, Any], *, max_bytes: int = MAX_BYTES, max_records: int = MAX_RECORDS
) -> Archive:
    """A copy of ``archive`` as plain JSON values, every rule of the format checked.

    ``max_bytes`` bounds its canonical form.

    Raises:
        MemoryArchiveError: A rule is broken; the message names it, with the store and record where there is one.
    """
    return check_archive(to_json(archive), max_bytes=max_bytes, max_records=max_records)


def seal_checked(archive: Archive, *, max_bytes: int = MAX_BYTES, max_records: int = MAX_RECORDS) -> Archive:
    """``archive``, a JSON tree without integrity, with the one that fits; every rule of the format holds in it.

    Raises:
        MemoryArchiveError: A rule is broken.
    """
    _check_kind(archive)
    parts = _canonical_parts(archive)
    sealed = {**archive, "integrity": _integrity(parts)}
    _check_size({**parts, "integrity": canonical(sealed["integrity"])}, max_bytes)
    _check_contents(sealed, max_records)
    return sealed


def check_archive(
    tree: Any, *, max_bytes: int = MAX_BYTES, max_records: int = MAX_RECORDS, checked: bool = True
) -> Archive:
    """``tree`` itself, a JSON tree in which every rule of the format holds.

    Values within their limits are taken for granted when ``checked``.

    Raises:
        MemoryArchiveError: As :func:`validate_archive`.
    """
    if not checked and isinstance(tree, dict):
        check_json(tree)
    _check_kind(tree)
    parts = _canonical_parts(tree)
    _check_size(parts, max_bytes)
    expected = _integrity({name: part for name, part in parts.items() if name != "integrity"})
    if tree.get("integrity") != expected:
        raise MemoryArchiveError(
            "the checksum does not fit: the archive was damaged or edited (integrity must be "
            f"algorithm sha256 with digest {expected['digest']})"
        )
    _check_contents(tree, max_records)
    return tree  # type: ignore[no-any-return]


def canonical_size(archive: Archive) -> int:
    """The length in bytes of the canonical form, integrity included."""
    return len(canonical(archive))


def _canonical_parts(archive: Archive) -> dict[str, bytes]:
    return {name: canonical(archive[name]) for name in sorted(archive)}


def _integrity(parts: Mapping[str, bytes]) -> dict[str, str]:
    digest = hashlib.sha256(b"{")
    for place, (name, part) in enumerate(parts.items()):
        digest.update(b"," if place else b"")
        digest.update(canonical(name) + b":")
        digest.update(part)
    digest.update(b"}")
    return {"algorithm": "sha256", "digest": digest.hexdigest()}


def _check_size(parts: Mapping[str, bytes], max_bytes: int) -> None:
    size = sum(len(name) + len(part) + 4 for name, part in parts.items()) + 1
    if size > max_bytes:
        raise MemoryArchiveError(f"the archive has {size} bytes in canonical form; at most {max_bytes} are allowed")


def _check_contents(tree: Archive, max_records: int) -> None:
    _check_envelope(tree)
    counts = {store: _check_store(store, records) for store, records in tree["stores"].items()}
    _check_total(counts, max_records)
    _check_manifest(tree["manifest"], counts)


def _check_kind(tree: Any) -> None:
    if not isinstance(tree, dict):
        raise MemoryArchiveError(f"not a memory archive: it must be a JSON object (got {_kind(tree)})")
    if tree.get("format") != FORMAT:
        raise MemoryArchiveError(f"not a memory archive: format must be {FORMAT!r} (got {tree.get('format')!r:.80})")
    version = tree.get("version")
    if type(version) is not int or version != VERSION:
        raise MemoryArchiveError(f"version must be the integer {VERSION} (got {version!r:.80})")


def _check_envelope(tree: Archive) -> None:
    _check_keys("archive", tree, ENVELOPE)
    if not isinstance(tree["stores"], dict):
        raise MemoryArchiveError(f"stores must be an object (got {_kind(tree['stores'])})")
    _check_keys("stores", tree["stores"], TAXONOMY)
    if tree["taxonomy"] != dict(TAXONOMY):
        raise MemoryArchiveError("taxonomy must map each of the 13 stores to its category")


def _check_keys(what: str, found: Mapping[str, Any], expected: Any) -> None:
    unknown = sorted(found.keys() - set(expected))
    missing = sorted(set(expected) - found.keys())
    if unknown or missing:
        said = [f"unknown {', '.join(map(repr, unknown))}"] if unknown else []
        said += [f"missing {', '.join(map(repr, missing))}"] if missing else []
        raise MemoryArchiveError(f"{what} has not the members of format version {VERSION}: {'; '.join(said)}")


def _check_store(store: str, records: Any) -> int:
    if not isinstance(records, list):
        raise MemoryArchiveError(f"{store} must be an array (got {_kind(records)})")
    natural = ID_FIELDS.get(store)
    seen: set[str] = set()
    for index, record in enumerate(records):
        where = f"{store}[{index}]"
        if not isinstance(record, dict) or record.keys() != {"id", "data"}:
            raise MemoryArchiveError(f"{where} must be an object of exactly id and data")
        record_id = record["id"]
        if not isinstance(record_id, str) or not 0 < len(record_id) <= MAX_ID_CHARACTERS:
            raise MemoryArchiveError(
                f"{where}: id must be a string of 1 to {MAX_ID_CHARACTERS} characters (got {record_id!r:.80})"
            )
        if record_id in seen:
            raise MemoryArchiveError(f"{where}: id {record_id!r:.80} is there twice")
        seen.add(record_id)
        _check_data(where, record_id, record["data"], natural)
    return len(records)


def _check_data(where: str, record_id: str, data: Any, natural: str | None) -> None:
    if not isinstance(data, dict):
        raise MemoryArchiveError(f"{where}: data must be an object (got {_kind(data)})")
    if natural is not None and data.get(natural) is not None and data[natural] != record_id:
        raise MemoryArchiveError(
            f"{where}: {natural} must equal the record's id {record_id!r:.80} (got {data[natural]!r:.80})"
        )
    for name in ("_id", "id"):
        if name in data and data[name] != record_id:
            raise MemoryArchiveError(
                f"{where}: data.{name} must equal the record's id {record_id!r:.80} (got {data[name]!r:.80})"
            )


def _check_total(counts: Mapping[str, int], max_records: int) -> None:
    total = sum(counts.values())
    if total > max_records:
        raise MemoryArchiveError(f"the archive has {total} records; at most {max_records} are allowed")


def _check_manifest(manifest: Any, counts: Mapping[str, int]) -> None:
    if not isinstance(manifest, dict):
        raise MemoryArchiveError(f"manifest must be an object (got {_kind(manifest)})")
    total = sum(counts.values())
    said = manifest.get("record_count")
    if type(said) is not int or said != total:
        raise MemoryArchiveError(f"manifest.record_count must be {total}, as many records there are (got {said!r:.80})")
    if manifest.get("counts") != counts:
        raise MemoryArchiveError("manifest.counts must say how many records each of the 13 stores has")
    missing = [name for name in _MANIFEST if name not in manifest]
    if missing:
        raise MemoryArchiveError(f"manifest is incomplete: {', '.join(missing)} is missing")
    if not isinstance(manifest["created_at"], str):
        raise MemoryArchiveError(f"manifest.created_at must be a string (got {manifest['created_at']!r:.80})")
    for name in ("warnings", "omitted_fields", "external_references"):
        texts = manifest.get(name, [])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise MemoryArchiveError(f"manifest.{name} must be an array of strings (got {texts!r:.80})")


def _kind(value: object) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
