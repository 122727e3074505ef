"""Answers of several servers put together: pure functions of documents.

Each entry of a list has a field `replica`, the name of the server that has reported the entry. The field
`partial` of an answer names each missing server, with the reason.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from meshwright.admin.jsonable import Document, Json

_LISTS: Final = ("proxies", "participants", "streams", "pushes", "callers", "called")
"""Lists with an entry for each proxy, stream or push."""

ReplicaOf = Callable[[str], str | None]
"""Function that returns the server of a proxy by its common name, None for a proxy that never connected."""


def partial(silent: Mapping[str, str]) -> list[Json]:
    """Return the field `partial`: the servers that are missing in an answer, each with the reason.

    For example, `[{"replica": "cp-1", "reason": "connection refused"}]`.
    """
    return [{"replica": replica, "reason": silent[replica]} for replica in sorted(silent)]


def located(items: Json, key: str, replica_of: ReplicaOf) -> list[Json]:
    """Return entries about proxies with the field `replica`; `key` has the common name of the proxy."""
    return [item | {"replica": replica_of(str(item[key]))} for item in _records(items)]


def of_one(replica: str, document: Document) -> Document:
    """Return the answer of one server alone; entries about proxies that never connected name no server."""
    lists: Document = {
        name: [
            item | {"replica": None if item.get("state") == "expected" else replica}
            for item in _records(document[name])
        ]
        for name in _LISTS
        if name in document
    }
    return {**document, **lists, "replica": replica, "partial": []}


def streams(own: str, document: Document, others: Mapping[str, Document]) -> Document:
    """Return the streams of all servers, by server and then in the order of the server.

    A stream's number counts at its server only.
    """
    every = {**others, own: document}
    return {
        "streams": [
            stream | {"replica": replica}
            for replica in sorted(every)
            for stream in _records(every[replica].get("streams"))
        ]
    }


def pushes(own: str, document: Document, others: Mapping[str, Document]) -> Document:
    """Return the last responses of all servers to one proxy, newest first."""
    every = {**others, own: document}
    result = [
        push | {"replica": replica}
        for replica in sorted(every)
        for push in _records(every[replica].get("pushes"))
    ]
    # sorted is stable, so responses of one server with equal times keep their order.
    result.sort(key=lambda push: str(push.get("at")), reverse=True)
    return document | {"pushes": list[Json](result)}


def published(
    own: str, document: Document, others: Mapping[str, Document], replica_of: ReplicaOf
) -> Document:
    """Return the snapshot of each proxy as the server has published it that has the proxy.

    Snapshots of proxies that are connected nowhere are those of this server. Equal snapshots are one entry.
    """
    snapshots: list[tuple[list[str], Json]] = []
    for replica, of in {own: document, **dict(sorted(others.items()))}.items():
        for snapshot in _records(of.get("snapshots")):
            names = [name for name in _texts(snapshot.get("proxies")) if (replica_of(name) or own) == replica]
            _add(snapshots, names, snapshot.get("resources"))
    return document | {
        "snapshots": [
            {"proxies": list[Json](sorted(names)), "resources": resources} for names, resources in snapshots
        ]
    }


def _add(snapshots: list[tuple[list[str], Json]], names: list[str], resources: Json) -> None:
    if not names:
        return
    for known, there in snapshots:
        if there == resources:
            known.extend(names)
            return
    snapshots.append((names, resources))


def connectivity(document: Document, others: Mapping[str, Document], replica_of: ReplicaOf) -> Document:
    """Return the state of a call with the field `replica`, and with the last push of each sidecar's server.

    Everything else is computed from the facts of all servers; only the pushes are not among these.
    """
    brought = {
        (replica, str(sidecar.get("proxy"))): sidecar.get("brought")
        for replica, of in others.items()
        for part in ("callers", "called")
        for sidecar in _records(of.get(part))
    }

    def completed(part: str) -> list[Json]:
        result = list[Json]()
        for sidecar in _records(document.get(part)):
            name = str(sidecar["proxy"])
            replica = replica_of(name)
            push = brought.get((replica or "", name), sidecar.get("brought"))
            result.append(sidecar | {"replica": replica, "brought": push})
        return result

    return document | {part: completed(part) for part in ("callers", "called") if part in document}


def _records(items: Json) -> Iterable[Document]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _texts(items: Json) -> Iterable[str]:
    return [str(item) for item in items] if isinstance(items, list) else []
