"""The pages Memory types and the explorer of each store."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from memorizz.archive.redaction import redact
from memorizz.errors import ProviderFault
from memorizz.portal import reading
from memorizz.portal.web import Call, Refused

PAGE_SIZE: Final = 50


def show_types(call: Call) -> Response:
    """The stores, with how much they hold."""
    with call.portal.connection.provider() as provider:
        counts = {store.type: provider.count(store.type) for store in reading.STORES}
    return call.render("types.html", counts=counts)


def show_store(call: Call) -> Response:
    """One page of a store's records, or of those that a search finds."""
    store = _store(call)
    query = call.query("q") or ""
    number = call.number("page")
    first = (number - 1) * PAGE_SIZE
    shown = []
    found = 0
    with call.portal.connection.provider() as provider:
        for record in provider.scan(store.type):
            if not query or reading.matches(redact(store.type, record).record, query):
                if first <= found < first + PAGE_SIZE:
                    shown.append((record["_id"], reading.title(store.type, record), record))
                found += 1
    pages = max(1, -(-found // PAGE_SIZE))
    if number > pages:
        raise Refused(f"page {number} is behind the last one, {pages}", 404)
    return call.render(
        "store.html", store=store, query=query, rows=shown, found=found, first=first, page=number, pages=pages
    )


def show_record(call: Call) -> Response:
    """One record, all of its fields."""
    store = _store(call)
    id = call.request.query_params.get("id", "")
    with call.portal.connection.provider() as provider:
        try:
            record = provider.get(store.type, id) if id else None
        except ProviderFault as error:
            raise Refused(f"the record {id!r:.80} cannot be read: {error}", 404) from None
        if record is None and (physical := provider.find(store.type, [id]).get(id)) is not None:
            # A playground knows records by the ids that they have in archives.
            record = provider.get(store.type, physical)
    if record is None:
        raise Refused(f"{store.title} has no record {id!r:.80}", 404)
    shown = redact(store.type, record, keep_vectors=True)
    return call.render(
        "record.html",
        store=store,
        id=id,
        title=reading.title(store.type, record),
        fields=reading.fields(shown.record),
        omitted=sorted(shown.omitted),
    )


def _store(call: Call) -> reading.Store:
    slug = call.request.path_params["slug"]
    store = reading.BY_SLUG.get(slug)
    if store is None:
        raise Refused(f"there is no memory type {slug!r:.80}", 404)
    return store
