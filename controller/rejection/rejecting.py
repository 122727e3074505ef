"""A proxy that rejects something: what it rejected, what it is to have instead, what may be good after."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import MappingProxyType

from controller.rejection.withheld import Refusal
from xds.cache import GroupKey
from xds.resource import Reference, Resource, TypeUrl, Version
from xds.snapshot import Snapshot


@dataclass(slots=True)
class Rejecting:
    """What is known of one proxy that rejects something.

    `rejected` are versions, `good` resources to be had instead, `said` its words. `suspects` are rejected
    with others, and may be good: they are tried again `pace` at a time. `variant` is the group of those who
    are served the same.
    """

    rejected: dict[Reference, frozenset[Version]] = field(default_factory=dict)
    good: dict[Reference, Resource] = field(default_factory=dict)
    said: dict[Reference, str] = field(default_factory=dict)
    suspects: list[Reference] = field(default_factory=list)
    pace: int = 1
    variant: GroupKey | None = None

    @property
    def certain(self) -> set[Reference]:
        """What is rejected for certain."""
        return self.rejected.keys() - set(self.suspects)

    def refusal(self) -> Refusal:
        """Return it as it is now, for a computation."""
        return Refusal(MappingProxyType(dict(self.rejected)), MappingProxyType(dict(self.good)))

    def refuse(self, resources: Iterable[Resource], said: str, *, is_guess: bool) -> None:
        """Take a rejection; with `is_guess` it is about one or more of these, nobody knows which."""
        keys = []
        for resource in resources:
            key = (resource.type_url, resource.name)
            keys.append(key)
            self.rejected[key] = self.rejected.get(key, frozenset()) | {resource.version}
            self.said[key] = said
        self.suspects = [key for key in self.suspects if key not in keys]
        if is_guess and len(keys) > 1:
            self.suspects.extend(keys)
            self.pace = len(keys) // 2

    def release(self, type_url: TypeUrl) -> bool:
        """Let the next suspects of a type be served again; say whether there are any.

        As long as that goes well, twice as many each time.
        """
        released = [key for key in self.suspects if key[0] == type_url][: self.pace]
        for key in released:
            self._forget(key)
        self.pace *= 2
        return bool(released)

    def lapse(self, own: Snapshot) -> bool:
        """Drop what is another version now than was rejected; say whether anything is left that is not.

        What the group no longer has, and was rejected when it came back for another's sake, waits for those.
        """
        alive = False
        for key, versions in [*self.rejected.items()]:
            resource = own.resources(key[0]).get(key[1])
            if resource is None:
                continue
            if resource.version in versions:
                alive = True
            else:
                self._forget(key)
        return alive

    def trim(self, own: Snapshot, asked: frozenset[Reference]) -> None:
        """Drop what no computation asks for."""
        self.good = {
            key: good
            for key, good in self.good.items()
            if key in asked and good.version not in self.rejected.get(key, ())
        }
        for key in [*self.rejected]:
            if key not in asked and key[1] not in own.resources(key[0]):
                self._forget(key)

    def _forget(self, key: Reference) -> None:
        del self.rejected[key], self.said[key]
        if key in self.suspects:
            self.suspects.remove(key)
