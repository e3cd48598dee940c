"""Vectors that a restore makes anew: asked for in batches, counted before, and never half."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memorizz import FileSystemConfig, FileSystemProvider, MemoryArchive, MemoryType, SQLiteConfig, SQLiteProvider
from memorizz.embedding import EmbeddingFailed, HttpEmbedder, configured
from memorizz.errors import ConfigurationError
from tests.memorizz.cli.conftest import Run, environment, run  # noqa: F401
from tests.memorizz.support import DATA
from tests.memorizz.transfer.test_import import fact, small
from tests.support.ollama import FakeOllama
from tests.support.openai import FakeOpenAI, openai

KB = MemoryType.KNOWLEDGE_BASE


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with openai() as started:
        yield started


def settings(server: FakeOpenAI) -> dict[str, str]:
    return {
        "MEMORIZZ_DEFAULT_EMBEDDING_PROVIDER": "openai",
        "MEMORIZZ_DEFAULT_EMBEDDING_MODEL": "small",
        "MEMORIZZ_DEFAULT_EMBEDDING_URL": server.url,
        "MEMORIZZ_DEFAULT_EMBEDDING_API_KEY": "the-key",
    }


def test_texts_are_embedded_in_batches_with_the_destinations_model(tmp_path: Path, server: FakeOpenAI) -> None:
    facts = [fact(f"k{number}", content="x" * (number + 1)) for number in range(150)]
    with SQLiteProvider(SQLiteConfig(tmp_path / "m.sqlite3")) as provider:
        provider.embedding_provider = HttpEmbedder("openai", "small", server.url, "the-key")
        archive = MemoryArchive(provider)
        preview = archive.import_archive(small(knowledge_base=facts), reembed=True)
        assert (preview["to_embed"], server.requests) == (150, [])
        report = archive.import_archive(small(knowledge_base=facts), reembed=True, dry_run=False)
        assert (report["ok"], report["imported"], report["to_embed"]) == (True, 150, 150)
        record = provider.get(KB, "k41")
    assert record is not None
    assert record["embedding"] == [42.0, 0.5]
    assert [len(body["input"]) for _, _, body in server.requests] == [64, 64, 22]
    assert {(path, key, body["model"]) for path, key, body in server.requests} == {
        ("/v1/embeddings", "Bearer the-key", "small")
    }


def test_an_ollama_embeds_too_and_the_configuration_can_name_it(tmp_path: Path) -> None:
    with FakeOllama() as ollama:
        embedder = HttpEmbedder("ollama", "nomic-embed-text", ollama.url)
        config = FileSystemConfig(tmp_path / "folder", embedding_provider=embedder)
        with FileSystemProvider(config) as provider:
            given = small(knowledge_base=[fact("k")])
            assert MemoryArchive(provider).import_archive(given, reembed=True, dry_run=False)["ok"]
            record = provider.get(KB, "k")
    assert record is not None
    assert len(record["embedding"]) == 768


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (500, b"oops", "answered with status 500: no reason given"),
        (401, b'{"error": {"message": "bad key"}}', "status 401: bad key"),
        (200, b"[]", "not answer with a JSON object"),
        (200, b'{"data": []}', "one vector for each of 1 texts"),
        (200, b'{"data": [{"index": 0, "embedding": ["a"]}]}', "one vector for each"),
        (200, b'{"data": [{"index": 0, "embedding": [NaN]}]}', "one vector for each"),
    ],
)
def test_a_failing_embedder_leaves_nothing_written(
    tmp_path: Path, server: FakeOpenAI, status: int, answer: bytes, message: str
) -> None:
    server.status, server.answer = status, answer
    with SQLiteProvider(SQLiteConfig(tmp_path / "m.sqlite3")) as provider:
        provider.embedding_provider = HttpEmbedder("openai", "small", server.url, "the-key")
        report = MemoryArchive(provider).import_archive(small(knowledge_base=[fact("k")]), reembed=True, dry_run=False)
        assert provider.count(KB) == 0
    assert (report["ok"], report["imported"]) == (False, 0)
    (error,) = report["errors"]
    assert (error["id"], error["error_type"]) == ("k", "EmbeddingFailed")
    assert message in error["message"]
    assert "the-key" not in json.dumps(report)


def test_an_embedder_that_is_gone_is_a_failure_in_words() -> None:
    with pytest.raises(EmbeddingFailed, match=r"small at http://127\.0\.0\.1:9 cannot be asked"):
        HttpEmbedder("openai", "small", "http://127.0.0.1:9").get_embedding("x")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PROVIDER": "abacus"}, "must name the model"),
        ({"PROVIDER": "abacus", "MODEL": "m"}, "the embedder must be one of ollama, openai"),
        ({"PROVIDER": "openai"}, "must name the model"),
        ({"PROVIDER": "openai", "MODEL": "m", "URL": "ftp://x"}, "must be http"),
        ({"PROVIDER": "openai", "MODEL": "m", "URL": "http://me:secret@x"}, "without user and password"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(variables: dict[str, str], message: str) -> None:
    given = {f"MEMORIZZ_DEFAULT_EMBEDDING_{name}": value for name, value in variables.items()}
    with pytest.raises(ConfigurationError, match=message) as refused:
        configured(given)
    assert "secret" not in str(refused.value)


def test_the_command_embeds_as_the_settings_say(
    run: Run,  # noqa: F811
    server: FakeOpenAI,
    tmp_path: Path,
) -> None:
    arguments = ("memory", "import", DATA / "types_kb_conv.memorizz.json", "--reembed", "--backend", "sqlite")
    done = run(*arguments, "--path", "m.sqlite3", "--apply", **settings(server))
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"]) == (0, True)
    assert report["to_embed"] == sum(len(body["input"]) for _, _, body in server.requests) > 0
    assert "the-key" not in done.stdout + done.stderr


@pytest.mark.parametrize(("answer", "embeds"), [(b"n\n", False), (b"y\n", True)])
def test_a_person_is_asked_before_it_costs_something(
    environment: dict[str, str],  # noqa: F811
    server: FakeOpenAI,
    tmp_path: Path,
    answer: bytes,
    embeds: bool,
) -> None:
    ours, theirs = pty.openpty()
    command: list[Any] = [
        sys.executable, "-m", "memorizz", "memory", "import", DATA / "types_kb_conv.memorizz.json", "--reembed",
        "--apply", "--backend", "sqlite", "--path", "m.sqlite3",
    ]  # fmt: skip
    with subprocess.Popen(
        command, env={**environment, **settings(server)}, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        os.write(ours, answer)
        shown = b""
        try:
            while part := os.read(ours, 65_536):
                shown += part
        except OSError:
            pass  # so Linux says that the other side is closed
        os.close(ours)
    assert b"texts are sent to small at http://127.0.0.1" in shown
    assert bool(server.requests) == embeds
    assert (tmp_path / "m.sqlite3").exists() == embeds
    assert process.returncode == (0 if embeds else 1)
