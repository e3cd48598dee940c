"""Writing what a plan says, and taking it back where it cannot be completed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, NamedTuple

from memorizz.archive import references
from memorizz.archive.foreign import ForeignProvider
from memorizz.archive.plan import Plan, Step, embedded_text, problem
from memorizz.errors import InvalidRecord, ProviderError, ProviderFault, ReadOnlyProvider, RecordExists
from memorizz.history import memory_change_context
from memorizz.providers.contract import Provider
from memorizz.records import payload
from memorizz.taxonomy import CONTEXT_PREFIX, HISTORY_PREFIX, MemoryType

_BATCH: Final = 500
_TOGETHER: Final = 64
OPERATION: Final = "archive_import"
_TAKEN_BACK: Final = "nothing of the import is kept: the destination is as it was before"
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
    then counts what is left and names why. So it is done when something else, such as Ctrl-C, ends the block.

    Raises:
        ProviderFault: The storage failed when all was to be kept; an atomic provider kept nothing.
    """
    atomic = provider.capabilities.atomic
    done: list[Step] = []
    try:
        steps = _ordered(_with_vectors(provider, plan.steps) if reembed else plan.steps)
        _prepare(provider, steps)
        with provider.transaction():
            for batch in _batches(provider, steps):
                _write(provider, batch, done)
            warnings = _record_history(provider, steps)
    except _Failed as failure:
        errors = [problem(failure.step.store, failure.step.id, failure.error)]
        if atomic:
            return Outcome(0, errors, [_TAKEN_BACK])
        left = _take_back(provider, done)
        errors += [problem(step.store, step.id, error) for step, error in left]
        return Outcome(len(left), errors, [_left(len(left)) if left else _TAKEN_BACK])
    except BaseException:  # Ctrl-C as well: whoever ends the program wants nothing half done
        if not atomic:
            _take_back(provider, done)
        raise
    return Outcome(len(steps), [], warnings)


def _prepare(provider: Provider, steps: Sequence[Step]) -> None:
    """Let a provider that has to make room, and cannot do so inside of a transaction, do it before."""
    prepare = getattr(provider, "archive_prepare", None)
    if prepare is not None:
        journal = {MemoryType.SHARED_MEMORY} if getattr(provider, "recorder", None) is not None else set()
        stores = journal.union(step.store for step in steps)
        prepare([store for store in MemoryType if store in stores])


def _ordered(steps: Sequence[Step]) -> list[Step]:
    agents = _delegates_first([step for step in steps if step.store is MemoryType.MEMAGENT])
    others = [step for step in steps if step.store is not MemoryType.MEMAGENT]
    return sorted([*others, *agents], key=lambda step: _LAST.index(step.store) + 1 if step.store in _LAST else 0)


def _delegates_first(agents: Sequence[Step]) -> list[Step]:
    """Agents after those they delegate to, as far as these do not delegate back."""
    by_id = {step.record["agent_id"]: step for step in agents}
    ordered: dict[str, Step] = {}
    begun: set[str] = set()
    waiting = list(reversed(by_id))
    while waiting:
        id = waiting[-1]
        if id in begun:
            ordered.setdefault(id, by_id[id])
            waiting.pop()
            continue
        begun.add(id)
        delegates = list(references.texts(by_id[id].record.get("delegates")))
        waiting += [delegate for delegate in reversed(delegates) if delegate in by_id and delegate not in begun]
    return list(ordered.values())


def _batches(provider: Provider, steps: Sequence[Step]) -> Iterator[list[Step]]:
    # Another maker's provider takes one record at a time, and does not say how many it took before it failed.
    size = 1 if isinstance(provider, ForeignProvider) else _BATCH
    for _, group in groupby(steps, key=_alike):
        same = list(group)
        for start in range(0, len(same), size):
            yield same[start : start + size]


def _alike(step: Step) -> tuple[MemoryType, bool]:
    return step.store, step.existing is not None


def _write(provider: Provider, batch: Sequence[Step], done: list[Step]) -> None:
    rows = [(step.id, step.record) for step in batch]
    try:
        provider.put(batch[0].store, rows, replace=batch[0].existing is not None)
    except (InvalidRecord, RecordExists, ReadOnlyProvider) as error:
        raise _Failed(_culprit(provider, batch, error), error) from error
    except ProviderError as error:
        culprit = _culprit(provider, batch, error)
        done += [step for step in batch if _is_written(provider, step)]
        raise _Failed(culprit, error) from error
    except BaseException:  # as in apply
        done += [step for step in batch if _is_written(provider, step)]
        raise
    done += batch


def _is_written(provider: Provider, step: Step) -> bool:
    """Whether the provider holds what was to be written, and not what another program wrote there meanwhile."""
    try:
        current = provider.get(step.store, step.id)
    except ProviderError:
        return True
    if isinstance(provider, ForeignProvider):
        # It may keep a record in a form of its own.
        return current != step.existing
    return current == step.record


def _culprit(provider: Provider, batch: Sequence[Step], error: ProviderError) -> Step:
    """The record of a batch that was refused: the first that cannot be stored, or is there, or is not there."""
    for step in batch:
        try:
            provider.check(step.store, step.id, step.record)
            current = provider.get(step.store, step.id)
        except ProviderError:
            return step
        if isinstance(error, RecordExists) and current is not None:
            return step
        if type(error) is ProviderFault and current != step.record:
            return step
    return batch[0]


def _take_back(provider: Provider, done: Sequence[Step]) -> list[tuple[Step, ProviderError]]:
    """Undo what was written, the newest first, and return what could not be undone."""
    left: list[tuple[Step, ProviderError]] = []
    for _, group in groupby(reversed(done), key=_alike):
        same = list(group)
        try:
            _undo(provider, same)
        except ProviderError:
            for step in same:
                try:
                    _undo(provider, [step])
                except ProviderError as error:
                    left.append((step, error))
    return left


def _undo(provider: Provider, steps: Sequence[Step]) -> None:
    """Remove what is new, or put back what was replaced; one store's, either all new or all replaced."""
    store = steps[0].store
    before = [(step.id, step.existing) for step in steps if step.existing is not None]
    if before:
        provider.put(store, before, replace=True)
    else:
        provider.delete(store, [step.id for step in steps])


def _with_vectors(provider: Provider, steps: Sequence[Step]) -> list[Step]:
    """The steps with a vector for each text, all made before anything is written."""
    embedder: Any = getattr(provider, "embedding_provider", None)
    made = list(steps)
    texts = [(index, text) for index, step in enumerate(steps) if (text := embedded_text(step.store, step.record))]
    # One at a time where it takes no more: then it is known which text it failed on.
    size = _TOGETHER if callable(getattr(embedder, "get_embeddings", None)) else 1
    for start in range(0, len(texts), size):
        batch = texts[start : start + size]
        try:
            vectors = _embedded(embedder, [text for _, text in batch])
        except Exception as error:  # the embedder is the caller's own, and may fail in any way
            raise _Failed(steps[batch[0][0]], error) from error
        for (index, _), vector in zip(batch, vectors, strict=True):
            made[index] = replace(made[index], record={**made[index].record, "embedding": vector})
    return made


def _embedded(embedder: Any, texts: Sequence[str]) -> list[list[float]]:
    together = getattr(embedder, "get_embeddings", None)
    vectors = together(texts) if callable(together) else [embedder.get_embedding(text) for text in texts]
    if len(vectors) != len(texts):
        raise ValueError(f"the embedder made {len(vectors)} vectors of {len(texts)} texts")
    return [[float(number) for number in vector] for vector in vectors]


def _record_history(provider: Provider, steps: Sequence[Step]) -> list[str]:
    recorder = getattr(provider, "recorder", None)
    if recorder is None:
        return []
    failed = 0
    with memory_change_context(source=OPERATION):
        for step in steps:
            kind = payload(step.record).get("record_type")
            if isinstance(kind, str) and kind.startswith((HISTORY_PREFIX, CONTEXT_PREFIX)):
                continue
            try:
                recorder.record(OPERATION, step.store, step.id, step.existing, step.record)
            except ProviderError:
                failed += 1
    return [f"{failed} of the changes are missing from the history, which could not be written"] if failed else []


def _left(number: int) -> str:
    return f"{number} of the records that were written could not be taken back; they are among the errors"
