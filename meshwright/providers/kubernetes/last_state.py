"""File format for the objects of a cluster that survive a restart: texts and times.

The file has two lines. The first is JSON, `{"version": 2, "sha256": ...}`, with the checksum of the second,
so that a truncated or edited file is detected. The file contains no secrets: Secrets are never saved, and
commands and environments of Pods are not stored.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, ConfigDict, Field, TypeAdapter, ValidationError

from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.resource import Key, Resource
from meshwright.providers.kubernetes.identity import Identity

MOST: Final = 256 * 1024 * 1024
"""Maximum characters of all saved objects."""


class SavedStateError(ValueError):
    """A saved state of a cluster cannot be used; the message has the reason in one clause."""


@dataclass(frozen=True, slots=True)
class SavedWatch:
    """Saved objects of a kind, of all namespaces or one, as known at the time `heard`."""

    resource: Resource
    namespace: str | None
    heard: datetime
    items: Mapping[Key, Item[str]]


@dataclass(frozen=True, slots=True)
class SavedState:
    """Last known objects of a cluster, as saved for the next start of the server."""

    cluster: Identity = field(default_factory=Identity)
    watches: tuple[SavedWatch, ...] = ()


_STRICT: Final = ConfigDict(extra="forbid")
Text = Annotated[str, Field(min_length=1, max_length=253)]


@dataclass(frozen=True, slots=True)
class _Watch:
    __pydantic_config__ = _STRICT
    group: Annotated[str, Field(max_length=253)]
    version: Text
    plural: Text
    kind: Text
    namespaced: bool
    namespace: Text | None
    heard: AwareDatetime
    items: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True, slots=True)
class _Cluster:
    __pydantic_config__ = _STRICT
    name: str
    server: str
    uid: str


@dataclass(frozen=True, slots=True)
class _Head:
    __pydantic_config__ = _STRICT
    version: Literal[2]
    sha256: str


@dataclass(frozen=True, slots=True)
class _Form:
    __pydantic_config__ = _STRICT
    cluster: _Cluster
    watches: tuple[_Watch, ...]


_HEAD: Final = TypeAdapter(_Head)
_FORM: Final = TypeAdapter(_Form)


def fits(kept: SavedState) -> bool:
    """Return whether the saved objects together have at most MOST characters."""
    return sum(len(item.body) for watch in kept.watches for item in watch.items.values()) <= MOST


def written(kept: SavedState) -> bytes:
    """Return the content of the file for the saved state, sorted."""
    watches = sorted(
        kept.watches, key=lambda saved_watch: (saved_watch.resource, saved_watch.namespace or "")
    )
    cluster = json.dumps(dataclasses.asdict(kept.cluster))
    content = f'{{"cluster":{cluster},"watches":[{",".join(map(_written, watches))}]}}'.encode()
    head = {"version": 2, "sha256": hashlib.sha256(content).hexdigest()}
    return b"%b\n%b\n" % (json.dumps(head).encode(), content)


def _written(watch: SavedWatch) -> str:
    resource = watch.resource
    head = {
        "group": resource.group,
        "version": resource.version,
        "plural": resource.plural,
        "kind": resource.kind,
        "namespaced": resource.namespaced,
        "namespace": watch.namespace,
        "heard": watch.heard.isoformat(),
    }
    # One by one, so that other threads can run between two objects.
    items = (
        json.dumps((*key, watch.items[key].version, watch.items[key].body)) for key in sorted(watch.items)
    )
    return f'{json.dumps(head)[:-1]},"items":[{",".join(items)}]}}'


def read(content: bytes) -> SavedState:
    """Parse the file of a saved state; raises SavedStateError for a damaged file or another version."""
    head, _, rest = content.partition(b"\n")
    body = rest.removesuffix(b"\n")
    try:
        if _HEAD.validate_json(head).sha256 != hashlib.sha256(body).hexdigest():
            raise SavedStateError("the content does not match the checksum in the first line")
        form = _FORM.validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise SavedStateError(f"{place}: {first['msg']}" if place else first["msg"]) from error
    cluster = Identity(form.cluster.name, form.cluster.server, form.cluster.uid)
    return SavedState(cluster, tuple(map(_watch, form.watches)))


def _watch(watch: _Watch) -> SavedWatch:
    resource = Resource(watch.group, watch.version, watch.plural, watch.kind, watch.namespaced)
    items = {(namespace, name): Item(version, body) for namespace, name, version, body in watch.items}
    return SavedWatch(resource, watch.namespace, watch.heard, items)
