"""Cache of the objects of one kind: lists and events in, differences out. Pure, without I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from meshwright.kube.errors import KubeError, Reason
from meshwright.kube.resource import Key, Raw, Resource

T = TypeVar("T")

INITIAL_END: Final = "k8s.io/initial-events-end"
"""Annotation of the bookmark at the end of a streaming list."""


@dataclass(frozen=True, slots=True)
class Item(Generic[T]):
    """A cached object: its resourceVersion, and the kept part, which may be a Secret's."""

    version: str
    body: T = field(repr=False)


Changes = dict[Key, Item[T] | None]
"""Changed objects by key; None for a deleted one."""


class UnreadError(Exception):
    """An object cannot be cached. The message has the name and the reason. `key` is None without a name."""

    def __init__(self, message: str, key: Key | None) -> None:
        super().__init__(message)
        self.key = key


class DisorderError(KubeError):
    """A watch event is not newer than the one before, so the cached objects cannot be trusted."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Reason.DISORDER)


class ObjectCache(Generic[T]):
    """The last known objects of one kind.

    `at` is the resourceVersion of the last event, and is empty during a list. `project` returns the part of
    an object to keep, and is not called for a known version.
    """

    def __init__(
        self, resource: Resource, project: Callable[[Raw], T], known: Mapping[Key, Item[T]] | None = None
    ) -> None:
        self.items: dict[Key, Item[T]] = dict(known or {})
        self.at = ""
        self._resource = resource
        self._project = project

    def begin(self) -> "PartialList[T]":
        """Begin a list, which replaces all cached objects when complete."""
        return PartialList(self)

    def read(self, raw: Any) -> tuple[Key, Item[T]]:  # noqa: ANN401 - whatever JSON has
        """Return the key and the cache item of an object; raise UnreadError."""
        key, version = self.named(raw)
        known = self.items.get(key)
        same = known is not None and known.version == version
        return key, known if known is not None and same else self._made(key, version, raw)

    def named(self, raw: Any) -> tuple[Key, str]:  # noqa: ANN401
        """Return key and version of an object; raise UnreadError if it is not of this kind."""
        metadata = raw.get("metadata") if isinstance(raw, dict) else None
        if not isinstance(metadata, dict):
            raise UnreadError(f"{self._resource}: an object lacks metadata", None)
        name, namespace = metadata.get("name"), metadata.get("namespace") or ""
        version = metadata.get("resourceVersion")
        if not isinstance(name, str) or not name or not isinstance(namespace, str):
            raise UnreadError(f"{self._resource}: an object lacks a name", None)
        key = (namespace, name)
        if bool(namespace) != self._resource.namespaced:
            missing = "no namespace" if self._resource.namespaced else f"the namespace {namespace}"
            raise UnreadError(f"{self._shown(key)} has {missing}", None)
        if raw.get("kind", self._resource.kind) != self._resource.kind:
            raise UnreadError(f"{self._shown(key)} has the kind {raw['kind']!r}", key)
        if not isinstance(version, str) or not version:
            raise UnreadError(f"{self._shown(key)} lacks a resourceVersion", key)
        return key, version

    def take(self, kind: str, raw: dict[str, Any], changes: Changes[T]) -> None:
        """Apply a watch event to the cache, and add the effect to `changes`.

        Raises UnreadError or DisorderError.
        """
        key, version = self.named(raw)
        known = self.items.get(key)
        if self.at and not later(version, self.at):
            if known is not None and known.version == version:
                return  # a repeated event
            raise DisorderError(
                f"{self._shown(key)} has version {version}, which is not newer than version "
                f"{self.at} of the last event"
            )
        self.at = version
        if kind == "DELETED":
            if self.items.pop(key, None) is not None:
                changes[key] = None
            return
        item = self.items[key] = self._made(key, version, raw)
        if known is None or known.body != item.body:
            changes[key] = item

    def bookmark(self, raw: Raw) -> None:
        """Record the resourceVersion of a watch's bookmark, from which the next watch continues."""
        version, _ = _mark(raw)
        if version and (not self.at or later(version, self.at)):
            self.at = version

    def _made(self, key: Key, version: str, raw: dict[str, Any]) -> Item[T]:
        try:
            return Item(version, self._project(self._typed(raw)))
        except Exception as error:  # a projection that fails must not end the watch
            raise UnreadError(f"{self._shown(key)}: {type(error).__name__}: {error}", key) from error

    def _typed(self, raw: dict[str, Any]) -> Raw:
        """Return the object with kind and apiVersion, which are missing in lists of core kinds."""
        if "kind" not in raw:
            raw["apiVersion"], raw["kind"] = self._resource.api_version, self._resource.kind
        return raw

    def _shown(self, key: Key) -> str:
        return f"{self._resource} {'/'.join(filter(None, key))}"


class PartialList(Generic[T]):
    """A list during its receipt. An unreadable object keeps its last known state."""

    def __init__(self, seen: ObjectCache[T]) -> None:
        self._seen = seen
        self._fresh: dict[Key, Item[T]] = {}

    def add(self, raw: Any) -> None:  # noqa: ANN401
        """Add an object to the list; raise UnreadError."""
        try:
            key, item = self._seen.read(raw)
        except UnreadError as error:
            if error.key is not None and (known := self._seen.items.get(error.key)) is not None:
                self._fresh[error.key] = known
            raise
        self._fresh[key] = item

    def remove(self, raw: Any) -> None:  # noqa: ANN401
        """Remove an object that was deleted during the list; raise UnreadError."""
        key, _ = self._seen.named(raw)
        self._fresh.pop(key, None)

    def complete(self, version: str) -> Changes[T]:
        """Replace all cached objects by the received list, and return the differences."""
        seen, fresh = self._seen, self._fresh
        changes: Changes[T] = {key: None for key in seen.items if key not in fresh}
        for key, item in fresh.items():
            known = seen.items.get(key)
            if known is None or known.body != item.body:
                changes[key] = item
        seen.items, seen.at = fresh, version
        return changes


def ends_list(raw: Raw) -> str | None:
    """Return the version of the list before a bookmark; None if the bookmark does not end a list."""
    version, annotations = _mark(raw)
    return version if annotations.get(INITIAL_END) == "true" else None


def _mark(raw: Raw) -> tuple[str, Mapping[str, Any]]:
    """Return the resourceVersion (empty if missing) and the annotations of a bookmark."""
    metadata = raw.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    version, annotations = metadata.get("resourceVersion"), metadata.get("annotations")
    return version if isinstance(version, str) else "", annotations if isinstance(annotations, dict) else {}


def later(version: str, other: str) -> bool:
    """Return whether a resourceVersion is later than another of the same kind.

    Since Kubernetes 1.35 versions are defined to be integers without leading zeros. Any other version counts
    as later.
    """
    if not (_is_number(version) and _is_number(other)):
        return True
    return (len(version), version) > (len(other), other)


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit() and version[0] != "0"
