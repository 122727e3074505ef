"""Entries of a route table in words: the requests, and what happens to them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from catalog.policy.values.route_actions import Answer, Forward, Share, WeightedBackend
from catalog.policy.values.route_table import AppliedSplit, RouteEntry
from meshwright.admin.jsonable import Document
from meshwright.admin.pages.access import requests_of
from meshwright.mesh.gateway.filters import Redirect
from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch


def lines(table: Iterable[RouteEntry], place: Document, called: str) -> Iterator[Document]:
    """Yield a line for each run of route entries with the same action and objects.

    `place` has the fields of what is called, and `called` the same in words.
    """
    for (outcome, objects), run in groupby(table, key=_decided):
        entries = list(run)
        yield _line(entries[0], [_requests(entry) for entry in entries], place, called, f"{outcome}{objects}")


def _decided(entry: RouteEntry) -> tuple[str, str]:
    """Return what happens to requests, and the objects that decide it."""
    objects = ", ".join(str(source.part.object_key) for source in entry.provenance)
    return to(entry), f" ({objects})" if objects else ""


def _requests(entry: RouteEntry) -> str | None:
    """Return the requests of a route entry, for example `GET /books.* and POST *`; None for all."""
    if entry.route is not None:
        return " and ".join(map(requests, entry.matches)) or None
    return " and ".join(map(requests_of, entry.named_matches)) or None


def _line(
    entry: RouteEntry, matched: Sequence[str | None], place: Document, called: str, outcome: str
) -> Document:
    texts = None if None in matched else [text for text in matched if text is not None]
    what = "everything" if texts is None else ", ".join(texts)
    parts = (source.part for source in entry.provenance)
    return {
        **place,
        "requests": None if texts is None else list(texts),
        "split": next((str(part.by) for part in parts if isinstance(part, AppliedSplit)), None),
        "route": None if entry.route is None else str(entry.route.object_key),
        "rule": None if entry.route is None else entry.route.rule_name,
        "backends": [
            {"service": str(backend.upstream), "target_port": backend.target_port, "weight": backend.weight}
            for backend in entry.backends
        ],
        "text": f"{called}: {what} -> {outcome}",
    }


def to(entry: RouteEntry) -> str:
    """Return what happens to the requests of an entry, for example `shop/v1 port 80 (weight 1)`."""
    match entry.action:
        case Forward(shares):
            return ", ".join(_share(share, alone=len(shares) == 1) for share in shares)
        case Redirect(status=status):
            return f"redirect with status {status}"
        case Answer(503):
            return "no backend: 503"
        case Answer(status):
            return f"answer {status}"


def _share(share: Share, *, alone: bool) -> str:
    match share:
        case WeightedBackend():
            place = f"{share.upstream} port {share.target_port}"
        case _:
            place = f"answer {share.status}"
    return place if alone else f"{place} (weight {share.weight})"


def requests(match: RequestMatch) -> str:
    """Return the requests of a match in one line, for example `GET /books/... x-user=ann ?page=2`.

    `*` stands for any method or any path, and a path with `/...` for all paths below it.
    """
    words = [",".join(match.methods) or "*", _path(match)]
    words += map(_field, match.headers)
    words += (f"?{_field(parameter)}" for parameter in match.parameters)
    return " ".join(words)


def _path(match: RequestMatch) -> str:
    match match.path:
        case None:
            return "*"
        case Exact(text):
            return text
        case Prefix(path):
            return f"{path.rstrip('/')}/..."
        case Regex(regex):
            return regex
        case GrpcMethod(service, method):
            return f"{service or '*'}/{method or '*'}"


def _field(wanted: FieldMatch) -> str:
    value = wanted.value
    return f"{wanted.name}={value.text if isinstance(value, Exact) else value.regex}"
