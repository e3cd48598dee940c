"""One graph around the ring of the providers, and back: every hop gives the records that it was given.

Oracle is not among them: its ids are UUIDs, so a record of another id leaves it under its UUID.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memorizz import FileSystemConfig, FileSystemProvider, MemoryArchive
from memorizz.providers.registry import open_provider
from tests.memorizz.providers.backends import BACKENDS
from tests.memorizz.support import reference_folder

RING = [backend for backend in BACKENDS if backend.kind != "oracle"]


def passed_on(provider: Any, archive: dict[str, Any]) -> dict[str, Any]:
    """What an export of ``provider`` holds after ``archive`` was restored there."""
    report = MemoryArchive(provider).import_archive(archive, dry_run=False)
    assert report["ok"], report["errors"]
    return MemoryArchive(provider).export()


def given(tmp_path: Path, **options: Any) -> dict[str, Any]:
    """An archive of the reference's folder, as a first restore leaves it: with automations off."""
    with FileSystemProvider(FileSystemConfig(reference_folder(tmp_path / "reference"))) as source:
        archive = MemoryArchive(source).export(**options)
    with FileSystemProvider(FileSystemConfig(tmp_path / "first")) as first:
        return passed_on(first, archive)


def test_a_graph_goes_around_all_providers_and_comes_back_as_it_was(tmp_path: Path) -> None:
    first = archive = given(tmp_path)
    for number, backend in enumerate((*RING, RING[0])):
        directory = tmp_path / f"{number}"
        directory.mkdir()
        with backend.at(directory).open() as provider:
            archive = passed_on(provider, archive)
        assert archive["stores"] == first["stores"], backend.kind


def test_a_knowledge_base_goes_through_the_typed_memory_too(tmp_path: Path) -> None:
    first = archive = given(tmp_path, memory_types=["knowledge_base"])
    for number, backend in enumerate(RING):
        with open_provider("agent-memory", {"path": tmp_path / f"{number}.db"}) as bridge:
            archive = passed_on(bridge, archive)
        assert archive["stores"] == first["stores"]
        directory = tmp_path / f"{number}"
        directory.mkdir()
        with backend.at(directory).open() as provider:
            archive = passed_on(provider, archive)
        assert archive["stores"] == first["stores"], backend.kind
