"""`/debug/xds/diff`: the difference between two versions of a resource that a proxy received."""

import difflib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from meshwright.admin.jsonable import Document
from meshwright.admin.pages.proxies.decoding import decode
from meshwright.admin.pages.proxies.pushes import Kept
from meshwright.admin.proxy_names import NothingToShow
from meshwright.admin.readers import PushReading, SnapshotReading
from meshwright.delivery.history.push import Push
from meshwright.mesh.identity import ProxyName
from meshwright.sidecars.type_words import type_word
from xds.protocol.resources.resource import SECRET, TYPES, Reference, Resource, ResourceName, TypeUrl, Version

USAGE: Final = (
    "?proxy=<UUID, common name or workload>&type=<cluster, endpoint, listener or route>&name=<resource>"
    "[&from=<version>&to=<version>]"
)


class VersionReading(PushReading, SnapshotReading, Protocol):
    """The readers of the present and earlier versions of resources."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two versions of one resource of a proxy, for a comparison."""

    proxy: ProxyName
    before: Resource
    after: Resource


def read_type(word: str, served: Iterable[TypeUrl] = ()) -> TypeUrl:
    """Return the type for a word such as `route` or for a type URL, of xDS or of `served`.

    Raises NothingToShow.
    """
    known = dict.fromkeys((*TYPES, *served))
    for type_url in known:
        if word in (type_url, type_word(type_url)):
            return type_url
    words = ", ".join(sorted(map(type_word, known)))
    raise NothingToShow(f"type {word[:200]!r} is unknown: must be one of {words}")


def pair(
    reading: VersionReading,
    proxy: ProxyName,
    type_url: TypeUrl,
    name: ResourceName,
    before: Version | None = None,
    after: Version | None = None,
) -> Pair:
    """Return two versions of a resource. Raises NothingToShow.

    `after` is the version in force by default, and `before` the version that the proxy received before
    `after`.
    """
    what = f"{type_word(type_url)} {name[:200]}"
    snapshot = reading.snapshot(proxy)
    current = snapshot.resources(type_url).get(name) if snapshot is not None else None
    if type_url == SECRET or (current is not None and current.secret):
        raise NothingToShow("the content of a secret and its changes are never shown")
    if after is None:
        if current is None:
            raise NothingToShow(f"proxy {proxy} does not have {what}{_kept(reading, proxy, type_url, name)}")
        after = current.version
    if before is None:
        before = next(_before(reading.pushes(proxy), type_url, name, after), None)
        if before is None:
            raise NothingToShow(
                f"the server does not know a version of {what} that it sent to {proxy} before {after}"
            )

    def found(version: Version) -> Resource:
        if (there := _find(reading, current, (type_url, name, version))) is not None:
            return there
        raise NothingToShow(
            f"version {version[:40]} of {what} is not stored any more{_kept(reading, proxy, type_url, name)}"
        )

    return Pair(proxy, found(before), found(after))


def kept(reading: VersionReading, proxy: ProxyName) -> Kept:
    """Return a function that checks whether a version may be shown, which a secret never may."""
    snapshot = reading.snapshot(proxy)

    def there(type_url: TypeUrl, name: ResourceName, version: Version) -> bool:
        current = None if snapshot is None else snapshot.resources(type_url).get(name)
        is_secret = type_url == SECRET or (current is not None and current.secret)
        return not is_secret and _find(reading, current, (type_url, name, version)) is not None

    return there


def comparable(reading: VersionReading, proxy: ProxyName) -> frozenset[Reference]:
    """Return the resources of a proxy, by type and name, with default versions that `pair` can compare."""
    snapshot, there = reading.snapshot(proxy), kept(reading, proxy)
    if snapshot is None:
        return frozenset()
    before: dict[Reference, Version] = {}
    for push in reading.pushes(proxy):
        in_force = snapshot.versions(push.type_url)
        for name, old, new in push.changed:
            if in_force.get(name) == new:
                before.setdefault((push.type_url, name), old)
    return frozenset(key for key, version in before.items() if there(*key, version))


def _find(
    reading: VersionReading, current: Resource | None, wanted: tuple[TypeUrl, ResourceName, Version]
) -> Resource | None:
    """Return a resource in this version: the served one, or a stored earlier one."""
    if current is not None and current.version == wanted[2]:
        return current
    return reading.replaced(*wanted)


def difference(shown: Pair) -> Document:
    """Return a line diff of two decoded resources. Decoding takes long, so it must run in a thread."""
    before, after = (
        json.dumps(decode(resource), indent=2, sort_keys=True) for resource in (shown.before, shown.after)
    )
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), shown.before.version, shown.after.version, lineterm=""
    )
    return {
        "proxy": str(shown.proxy),
        "type": type_word(shown.after.type_url),
        "name": shown.after.name,
        "from": shown.before.version,
        "to": shown.after.version,
        "diff": list(lines),
    }


def _before(
    pushes: tuple[Push, ...], type_url: TypeUrl, name: ResourceName, version: Version
) -> Iterator[Version]:
    """Yield the versions of a resource replaced by this version, the latest first."""
    for push in pushes:
        for changed, old, new in push.changed if push.type_url == type_url else ():
            if changed == name and new == version:
                yield old


def _kept(reading: VersionReading, proxy: ProxyName, type_url: TypeUrl, name: ResourceName) -> str:
    """Return the end of an error message with the stored versions."""
    sent = dict.fromkeys(
        version
        for push in reading.pushes(proxy)
        if push.type_url == type_url
        for changed, *versions in push.changed
        if changed == name
        for version in reversed(versions)
    )
    there = [version for version in sent if reading.replaced(type_url, name, version) is not None]
    return "; stored versions: " + ", ".join(there) if there else ""
