"""Progress of rollouts at the other servers of a mesh, which the leader adds to its own. A pure module."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from pydantic import TypeAdapter, ValidationError

from meshwright.kubernetes.status.rollouts import Progress
from meshwright.mesh.objects import ObjectKey


@dataclass(frozen=True, slots=True)
class ObjectProgress:
    """Progress of the last change of an object at the proxies of one server.

    `generation` is the object's newest `metadata.generation` that the server has read.
    """

    key: ObjectKey
    generation: int
    applied: int
    total: int


class UnreadableProgressError(ValueError):
    """Error for the progress of another server that cannot be read."""


def encode_progress(progress: Iterable[ObjectProgress]) -> bytes:
    """Return the progress of all objects as JSON."""
    return _adapter().dump_json(tuple(progress))


def decode_progress(content: bytes) -> tuple[ObjectProgress, ...]:
    """Return the progress in an answer; raise UnreadableProgressError."""
    try:
        return _adapter().validate_json(content)
    except ValidationError as error:
        raise UnreadableProgressError(str(error.error_count())) from None


@cache
def _adapter() -> TypeAdapter[tuple[ObjectProgress, ...]]:
    return TypeAdapter(tuple[ObjectProgress, ...])


@dataclass(frozen=True, slots=True)
class ProgressElsewhere:
    """The last known progress at each other server, and the servers that did not answer the last time."""

    known: Mapping[str, Mapping[ObjectKey, ObjectProgress]] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()

    def answered(
        self, answers: Mapping[str, Iterable[ObjectProgress]], silent: Iterable[str]
    ) -> "ProgressElsewhere":
        """Return the progress after another round of questions; a server that is gone is forgotten.

        The proxies of a server that is gone connect to others, which count them from then on.
        """
        missing = frozenset(silent)
        kept = {replica: self.known[replica] for replica in missing if replica in self.known}
        new = {replica: {item.key: item for item in items} for replica, items in answers.items()}
        return ProgressElsewhere({**kept, **new}, missing)

    def changed_since(self, before: "ProgressElsewhere") -> frozenset[ObjectKey]:
        """Return the objects whose progress differs; all of them if other servers answer."""
        servers = {*self.known, *before.known}
        same = servers == {*before.known} and self.silent == before.silent
        result = set[ObjectKey]()
        for replica in servers:
            now, then = self.known.get(replica, {}), before.known.get(replica, {})
            result.update(key for key in {*now, *then} if not same or now.get(key) != then.get(key))
        return frozenset(result)

    @property
    def is_pending(self) -> bool:
        """Return whether a proxy of another server has not yet applied a change, or a server is silent."""
        return bool(self.silent) or any(
            item.applied < item.total for of in self.known.values() for item in of.values()
        )

    def progress(self, key: ObjectKey, own: Progress | None, generation: int | None) -> Progress | None:
        """Return the progress of an object at all servers; None if no server has seen a change.

        A server that has read an older generation, or does not answer, is unknown, and the change is not
        complete. A server without the object in its answer has no proxy that the change concerns.
        """
        applied, total = (0, 0) if own is None else (own.applied, own.total)
        unknown, is_seen = set[str](), own is not None
        for replica in {*self.known, *self.silent}:
            item = self.known.get(replica, {}).get(key)
            if item is not None and item.generation == (generation or 0):
                applied, total, is_seen = applied + item.applied, total + item.total, True
                if replica in self.silent and item.applied < item.total:
                    unknown.add(replica)
            elif own is not None and (item is not None or replica in self.silent):
                unknown.add(replica)
        if not is_seen:
            return None
        return Progress(
            applied, total, f"{len({*self.known, *self.silent}) + 1} servers", tuple(sorted(unknown))
        )
