"""Writing what a plan says, and taking it back where it cannot be completed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, NamedTuple

from memorizz.archive.plan import Plan, Step, embedded_text, problem
from memorizz.errors import InvalidRecord, ProviderError
from memorizz.history import memory_change_context
from memorizz.providers.contract import Provider
from memorizz.records import payload
from memorizz.taxonomy import CONTEXT_PREFIX, HISTORY_PREFIX, MemoryType

_BATCH: Final = 500
OPERATION: Final = "archive_import"
# What is referred to comes first: whoever reads meanwhile finds whole agents.
_LAST: Final = (MemoryType.SHARED_MEMORY, MemoryType.SUMMARIES, MemoryType.MEMAGENT)


class Outcome(NamedTuple):
    """How many records are written, and what went wrong, as entries of the report."""

    imported: int
    errors: list[dict[str, str]]
    warnings: list[str]


class _Failed(Exception):
    def __init__(self, step: Step, error: Exception) -> None:
        self.step = step
        self.error = error


def apply(provider: Provider, plan: Plan, *, reembed: bool) -> Outcome:
    """Write the records of ``plan``: all, or after a failure none. What was replaced is then as it was before.

    On a provider that is not atomic, taking back is a matter of further writes, which may fail as well; the outcome
    then counts what is left.
    """
    done: list[Step] = []
    try:
        steps = _ordered(_with_vectors(provider, plan.steps) if reembed else plan.steps)
        with provider.transaction():
            for batch in _batches(steps):
                _write(provider, batch, done)
    except _Failed as failure:
        errors = [problem(failure.step.store, failure.step.id, failure.error)]
        if not provider.capabilities.atomic:
            errors += _take_back(provider, done)
            return Outcome(len(done), errors, [])
        return Outcome(0, errors, [])
    return Outcome(len(steps), [], _record_history(provider, steps))


def _ordered(steps: Sequence[Step]) -> list[Step]:
    return sorted(steps, key=lambda step: _LAST.index(step.store) + 1 if step.store in _LAST else 0)


def _batches(steps: Sequence[Step]) -> Iterator[list[Step]]:
    for _, group in groupby(steps, key=lambda step: (step.store, step.existing is not None)):
        same = list(group)
        for start in range(0, len(same), _BATCH):
            yield same[start : start + _BATCH]


def _write(provider: Provider, batch: Sequence[Step], done: list[Step]) -> None:
    rows = [(step.id, step.record) for step in batch]
    try:
        provider.put(batch[0].store, rows, replace=batch[0].existing is not None)
    except ProviderError as error:
        # Whatever of the batch was written before the fault has to be taken back too.
        done += batch
        raise _Failed(_culprit(provider, batch, error), error) from error
    done += batch


def _culprit(provider: Provider, batch: Sequence[Step], error: ProviderError) -> Step:
    """The record of a batch that was refused: the first that cannot be stored, or that is not there."""
    for step in batch:
        try:
            provider.check(step.store, step.id, step.record)
            if not isinstance(error, InvalidRecord) and provider.get(step.store, step.id) != step.record:
                return step
        except ProviderError:
            return step
    return batch[0]


def _take_back(provider: Provider, done: list[Step]) -> list[dict[str, str]]:
    """Undo what was written, newest first; what is left of ``done`` could not be undone."""
    while done:
        step = done[-1]
        try:
            if step.existing is None:
                provider.delete(step.store, [step.id])
            else:
                provider.put(step.store, [(step.id, step.existing)], replace=True)
        except ProviderError as error:
            return [problem(step.store, step.id, error)]
        done.pop()
    return []


def _with_vectors(provider: Provider, steps: Sequence[Step]) -> list[Step]:
    """The steps with a vector for each text, all made before anything is written."""
    embedder: Any = getattr(provider, "embedding_provider", None)
    made = []
    for step in steps:
        text = embedded_text(step.store, step.record)
        if text is not None:
            try:
                vector = [float(number) for number in embedder.get_embedding(text)]
            except Exception as error:  # the embedder is the caller's own, and may fail in any way
                raise _Failed(step, error) from error
            step = replace(step, record={**step.record, "embedding": vector})
        made.append(step)
    return made


def _record_history(provider: Provider, steps: Sequence[Step]) -> list[str]:
    recorder = getattr(provider, "recorder", None)
    if recorder is None:
        return []
    with memory_change_context(source=OPERATION):
        for step in steps:
            kind = payload(step.record).get("record_type")
            if not (isinstance(kind, str) and kind.startswith((HISTORY_PREFIX, CONTEXT_PREFIX))):
                recorder.record(OPERATION, step.store, step.id, step.existing, step.record)
    return []
