"""Objects in etcd as a value: the objects in force and their problems. Each key is a holder of its own."""

from collections.abc import Iterable
from typing import Self

from meshwright.etcd.values import KeyValue
from meshwright.mesh.objects import SourcedObject
from meshwright.mesh.origins import FromSource
from meshwright.providers.etcd.manifest import read_value
from meshwright.providers.etcd.names import ObjectNames
from meshwright.providers.objects import Objects


class EtcdObjects(Objects[str]):
    """The objects of one etcd, by the shown names of their keys."""

    __slots__ = ()

    @staticmethod
    def holder_of(sourced: SourcedObject) -> str:
        """Return the shown name of the key with an object."""
        match sourced.origin:
            case FromSource(_, name):
                return name
            case other:
                raise TypeError(f"{sourced.key} is from {other}, which is not a key of etcd")

    def taken(self, names: ObjectNames, items: Iterable[KeyValue], removed: Iterable[bytes]) -> Self:
        """Return the state after new and changed keys, and removed ones; `self` without a change."""
        forms = {
            (shown := names.shown(item.key)): read_value(names, item, self.holders.get(shown))
            for item in items
        }
        return self.holding({**dict.fromkeys(map(names.shown, removed)), **forms})
