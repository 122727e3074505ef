"""The part of the status of a Gateway, ListenerSet or GatewayClass that Meshwright owns, as values.

Conditions of other types belong to other controllers: they keep their form and their place.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Self

from meshwright.kubernetes.status.conditions.conditions import Condition, Conditions
from meshwright.kubernetes.status.served_objects import Raw
from meshwright.mesh.kinds import GATEWAY_API, Kind

ACCEPTED: Final = "Accepted"
PROGRAMMED: Final = "Programmed"
CONFLICTED: Final = "Conflicted"
RESOLVED_REFS: Final = "ResolvedRefs"
INSECURE_VALIDATION: Final = "InsecureFrontendValidationMode"

_SETS: Final = "attachedListenerSets"
_OF_GATEWAY: Final = (ACCEPTED, PROGRAMMED, RESOLVED_REFS, INSECURE_VALIDATION)
_OF_SET: Final = (ACCEPTED, PROGRAMMED)
_OF_LISTENER: Final = (ACCEPTED, CONFLICTED, RESOLVED_REFS, PROGRAMMED)


@dataclass(frozen=True, slots=True)
class ListenerStatus:
    """Status of a listener: its conditions, the kinds of routes, and the number of attached routes."""

    name: str
    kinds: tuple[Kind, ...]
    attached: int
    conditions: Conditions

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Return a listener's status in an object."""
        kinds = tuple(
            Kind(str(item.get("kind")), str(item.get("group", GATEWAY_API)))
            for item in _mappings(raw.get("supportedKinds"))
        )
        attached = raw.get("attachedRoutes")
        conditions = _conditions(raw, _OF_LISTENER)
        return cls(str(raw.get("name")), kinds, attached if isinstance(attached, int) else -1, conditions)

    def merged(self, raw: Raw, now: datetime) -> Raw:
        """Return the status of the listener in place of the one in an object."""
        return {
            "name": self.name,
            "supportedKinds": [{"group": kind.group, "kind": kind.name} for kind in self.kinds],
            "attachedRoutes": self.attached,
            "conditions": _merged(raw, self.conditions, now),
        }

    def timeless(self) -> Self:
        """Return the status without times of transitions."""
        return replace(self, conditions=_timeless(self.conditions))


@dataclass(frozen=True, slots=True)
class ListenerSetStatus:
    """Status of a ListenerSet: conditions, and one entry for each listener."""

    conditions: Conditions
    listeners: tuple[ListenerStatus, ...]

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Return the status in an object."""
        status = _status(raw)
        listeners = tuple(ListenerStatus.read(item) for item in _mappings(status.get("listeners")))
        return cls(_conditions(status, _OF_SET), listeners)

    def merged(self, raw: Raw, now: datetime) -> Raw:
        """Return the new status of an object; a listener that is gone is left out."""
        status = _status(raw)
        before = {str(item.get("name")): item for item in _mappings(status.get("listeners"))}
        return {
            **status,
            "conditions": _merged(status, self.conditions, now),
            "listeners": [item.merged(before.get(item.name, {}), now) for item in self.listeners],
        }

    def differs(self, known: Self) -> bool:
        """Return whether the status in the cluster must be written; times do not count."""
        return self._timeless() != known._timeless()

    def _timeless(self) -> Self:
        listeners = tuple(item.timeless() for item in self.listeners)
        return replace(self, conditions=_timeless(self.conditions), listeners=listeners)


@dataclass(frozen=True, slots=True)
class GatewayStatus(ListenerSetStatus):
    """Status of a Gateway: also the addresses, and the number of attached ListenerSets."""

    addresses: tuple[tuple[str, str], ...] = ()
    sets: int = 0

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Return the status in an object."""
        status, common = _status(raw), ListenerSetStatus.read(raw)
        addresses = tuple(
            (str(item.get("type")), str(item.get("value"))) for item in _mappings(status.get("addresses"))
        )
        sets = status.get(_SETS)
        number = sets if isinstance(sets, int) else 0
        return cls(_conditions(status, _OF_GATEWAY), common.listeners, addresses, number)

    def merged(self, raw: Raw, now: datetime) -> Raw:
        """Return the new status of an object; a listener that is gone is left out."""
        # An older definition lacks the field for the number, and then nobody writes ListenerSets.
        counted = {_SETS: self.sets} if self.sets or _SETS in _status(raw) else {}
        return {
            **ListenerSetStatus.merged(self, raw, now),
            "addresses": [{"type": kind, "value": value} for kind, value in self.addresses],
            **counted,
        }


@dataclass(frozen=True, slots=True)
class ClassStatus:
    """Status of a GatewayClass: conditions, and the names of supported features, sorted."""

    conditions: Conditions
    features: tuple[str, ...]

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Return the status in an object."""
        status = _status(raw)
        features = tuple(str(item.get("name")) for item in _mappings(status.get("supportedFeatures")))
        return cls(_conditions(status, (ACCEPTED,)), features)

    def merged(self, raw: Raw, now: datetime) -> Raw:
        """Return the new status of an object."""
        status = _status(raw)
        return {
            **status,
            "conditions": _merged(status, self.conditions, now),
            "supportedFeatures": [{"name": name} for name in self.features],
        }

    def differs(self, known: Self) -> bool:
        """Return whether the status in the cluster must be written; times do not count."""
        return (self.features, _timeless(self.conditions)) != (known.features, _timeless(known.conditions))


def is_outdated(raw: Raw, conditions: Conditions, generation: int) -> bool:
    """Return whether a decision about `generation` is older than the object, or than own `conditions`."""
    current = (raw.get("metadata") or {}).get("generation") or 0
    return max([current, *(condition.generation for condition in conditions)]) > generation


def _status(raw: Raw) -> Raw:
    status = raw.get("status")
    return status if isinstance(status, Mapping) else {}


def _mappings(listed: object) -> list[Raw]:
    return [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []


def _conditions(raw: Raw, types: Iterable[str]) -> Conditions:
    parsed = {item.type: item for item in map(Condition.parse, _mappings(raw.get("conditions"))) if item}
    return tuple(parsed[name] for name in types if name in parsed)


def _merged(raw: Raw, wanted: Conditions, now: datetime) -> list[Raw]:
    """Return the conditions of an object, or of a listener in it, with the wanted ones in their places."""
    missing = {condition.type: condition for condition in wanted}
    # A condition keeps its place, so that the list differs from the old one only by what has changed.
    result: list[Raw] = []
    for item in _mappings(raw.get("conditions")):
        new = missing.pop(str(item.get("type")), None)
        if new is not None:
            result.append(new.in_transition(Condition.parse(item), now).written())
        elif item.get("type") != INSECURE_VALIDATION:  # ours alone, and absent unless it is true
            result.append(item)
    return [*result, *(condition.in_transition(None, now).written() for condition in missing.values())]


def _timeless(conditions: Conditions) -> Conditions:
    return tuple(replace(condition, since=None) for condition in conditions)
