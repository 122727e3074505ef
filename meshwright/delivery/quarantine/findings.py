"""Resources that proxies have rejected, for problem reports, metrics and the saved verdicts."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from catalog.policy.units import Unit, UnitId
from meshwright.delivery.quarantine.record import Accusation, Record, Suspect
from meshwright.delivery.quarantine.records import Records
from meshwright.delivery.quarantine.reduced_snapshot import replaced_units
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.mesh.objects import ObjectKey
from meshwright.sidecars.contract.reasons import Reason
from xds.cache import NodeKey
from xds.protocol.resources.resource import Reference, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RejectedResource:
    """A resource, or a unit of policy in a resource, rejected by proxies.

    `proxy` is the first of these proxies, `message` the error message and `reason` the meaning of the
    message. `changed` are the objects whose change made the rejected version. `replaced` is whether all of
    these proxies have a good version to continue with.
    """

    proxy: NodeKey
    type_url: TypeUrl
    name: ResourceName
    version: Version
    message: str
    replaced: bool
    unit: Unit | None = None
    reason: Reason = Reason.CONTENT
    changed: frozenset[ObjectKey] = frozenset()


@dataclass(frozen=True, slots=True)
class ExcludedUnit:
    """A unit of policy excluded for some proxies (sorted), with the accusation of the first.

    `replaced` are those of the proxies that have units of an earlier version in its place.
    """

    unit: Unit
    proxies: tuple[NodeKey, ...]
    accusation: Accusation
    certain: bool
    replaced: frozenset[NodeKey] = frozenset()


class Findings:
    """Read-only view of the records of rejected resources.

    `served` returns the snapshot that a proxy gets. With `has_others` other servers serve proxies of the mesh
    too. `is_here` is False for a proxy that may be connected to another server, which counts the proxy then.
    """

    def __init__(
        self,
        records: Records,
        served: Callable[[NodeKey], Snapshot | None],
        is_here: Callable[[NodeKey], bool],
        *,
        has_others: bool = False,
    ) -> None:
        self._records = records
        self._served = served
        self._is_here = is_here
        self._has_others = has_others

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return the units of policy proved guilty, sorted, including verdicts on disconnected proxies.

        With several servers, the latter are left out, because the other servers have them too.
        """
        earlier = self._records.earlier
        nodes = self._records.waiting if self._has_others else earlier.keys()
        result = (verdict for node in self._records.by_node for verdict in self._records.verdicts(node))
        known = (*result, *(verdict for node in nodes for verdict in earlier[node]))
        return tuple(sorted(known, key=lambda verdict: (verdict.proxy, verdict.unit)))

    def units_out(self) -> tuple[ExcludedUnit, ...]:
        """Return the units of policy excluded for at least one proxy, in the order of their ids."""
        result: dict[UnitId, list[tuple[NodeKey, Record]]] = {}
        for node, record in sorted(self._records.by_node.items(), key=lambda item: item[0]):
            for unit_id in record.units:
                result.setdefault(unit_id, []).append((node, record))
        replaced = {node: self._replaced(node) for node in self._records.by_node}
        return tuple(
            ExcludedUnit(
                unit,
                tuple(node for node, _ in records),
                records[0][1].accused[key],
                any(key in record.proved for _, record in records),
                frozenset(node for node, _ in records if key in replaced[node]),
            )
            for key, records in sorted(result.items())
            if (unit := self._records.unit(records[0][0], key)) is not None
        )

    def _replaced(self, node: NodeKey) -> frozenset[UnitId]:
        own, served = self._records.own(node), self._served(node)
        return frozenset() if own is None or served is None else replaced_units(own, served)

    def counts(self) -> Mapping[TypeUrl, int]:
        """Return the number of withheld or reduced resources by type, counted once for each proxy."""
        nodes = filter(self._is_here, self._records.nodes())
        return Counter(
            key[0] for node in nodes for record in self._records.all_of(node) for key in record.withheld
        )

    def rejected_by(self, node: NodeKey) -> tuple[Reference, ...]:
        """Return the resources certainly rejected by a proxy and not accepted since, sorted."""
        records = self._records.all_of(node)
        return tuple(sorted({record.accused[item].key for record in records for item in record.proved}))

    def rejected(self) -> tuple[RejectedResource, ...]:
        """Return the certain rejections, sorted; suspects are left out.

        A rejected resource is reported once for all proxies of a group with the same version, a unit of
        policy once for all proxies.
        """
        result: dict[object, list[_Case]] = {}
        for node in self._records.nodes():
            for case in self._cases(node):
                is_unit = isinstance(case.suspect, str)
                place = (self._records.group(node), case.accusation.key, case.version)
                if is_unit or case.there:
                    result.setdefault(case.suspect if is_unit else place, []).append(case)
        merged = map(self._merged_cases, result.values())
        return tuple(
            sorted(
                merged,
                key=lambda resource: (
                    resource.proxy,
                    resource.type_url,
                    resource.name,
                    repr(resource.unit),
                ),
            )
        )

    def rejections_of(self, node: NodeKey, key: Reference) -> tuple[RejectedResource, ...]:
        """Return the certain rejections of one resource by a proxy."""
        cases = (case for case in self._cases(node) if case.accusation.key == key)
        return tuple(self._merged_cases([case]) for case in sorted(cases, key=lambda case: str(case.suspect)))

    def _cases(self, node: NodeKey) -> "list[_Case]":
        """Return the certain rejections of a proxy; an empty list if it has no computed snapshot."""
        own = self._records.own(node)
        if own is None:
            return []
        cases = []
        for record in self._records.all_of(node):
            for suspect in record.proved:
                type_url, name = record.accused[suspect].key
                resource = own.resources(type_url).get(name)
                version = Version("") if resource is None else resource.version
                cases.append(_Case(node, record, suspect, version, there=resource is not None))
        return cases

    def _merged_cases(self, cases: "list[_Case]") -> RejectedResource:
        """Return one value for equal rejections of several proxies, with the message of the first."""
        first, one = cases[0], cases[0].accusation
        unit = self._records.unit(first.node, first.suspect) if isinstance(first.suspect, str) else None
        replaced = all(one.key in case.record.good for case in cases)
        return RejectedResource(
            first.node, *one.key, first.version, one.message, replaced, unit, one.reason, one.changed
        )


@dataclass(frozen=True, slots=True)
class _Case:
    """Rejection of one suspect by one proxy.

    `there` is False, and `version` empty, if the computed snapshot does not have the resource.
    """

    node: NodeKey
    record: Record
    suspect: Suspect
    version: Version
    there: bool

    @property
    def accusation(self) -> Accusation:
        return self.record.accused[self.suspect]
