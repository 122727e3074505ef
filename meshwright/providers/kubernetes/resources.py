"""Which kinds of a cluster are watched, and in which of the versions that it serves.

Watched are Namespaces, Services, their endpoints, Pods and ServiceAccounts, and policy of every kind whose
CRD is there. Not watched is what makes Pods, such as a Deployment: it is read from files to judge manifests
before anything runs, and in a cluster the Pods themselves say more, and truly. Neither are Endpoints, which
the API server has as EndpointSlices too. Of policy that is known and not enforced here (specs.osm.unenforced)
the objects are watched as well, for their owners are to be told.

A cluster serves a kind in several versions, each of which shows all its objects: watched is the newest one
that is read. A kind that is no longer served is believed to be gone after a while only. Discovery may say so
of a server that has just begun, and whoever removes a CRD has its objects removed, and the watch told, before
that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from meshwright.kube.builtin import NAMESPACES, PODS, SLICES
from meshwright.kube.discovery import ServedResources
from meshwright.kube.resource import Resource
from meshwright.mesh.kinds import ENDPOINT_SLICE, NAMESPACE, POD, SERVICE, SERVICE_ACCOUNT, Kind
from meshwright.providers.moments import Moment
from meshwright.specs.kinds import READ
from meshwright.specs.osm.unenforced_policy import UNENFORCED

CORE: Final[Mapping[Kind, Resource]] = {
    NAMESPACE: NAMESPACES,
    SERVICE: Resource("", "v1", "services", SERVICE.name),
    POD: PODS,
    SERVICE_ACCOUNT: Resource("", "v1", "serviceaccounts", SERVICE_ACCOUNT.name),
    ENDPOINT_SLICE: SLICES,
}
"""What every cluster serves."""

_OF_KUBERNETES: Final = frozenset({"", "apps", "batch", ENDPOINT_SLICE.group})
"""Groups that need no CRD."""

POLICY: Final[tuple[Kind, ...]] = tuple(
    sorted(kind for kind in (*READ, *UNENFORCED) if kind.group not in _OF_KUBERNETES)
)
"""What a cluster serves where its CRD is installed: whatever else is read, or known and not enforced."""

GROUPS: Final = tuple(sorted({kind.group for kind in POLICY}))
"""The API groups in which they are looked for."""


def kind_of(resource: Resource) -> Kind:
    """Return the kind that a resource has."""
    return Kind(resource.kind, resource.group)


def newest(kind: Kind, served: ServedResources) -> Resource | None:
    """Return the newest version of a kind that is served and read; None if there is none."""
    reader = READ.get(kind)
    known = (
        each for each in served.of(kind.group, kind.name) if reader is None or each.version in reader.versions
    )
    return next(known, None)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be watched.

    `missing` are kinds among them that are served no more, and since when. `unread` are kinds that are served
    in versions alone that are not read, with these: what is known of them stays as it is.
    """

    watched: Mapping[Kind, Resource] = field(default_factory=lambda: dict(CORE))
    missing: Mapping[Kind, Moment] = field(default_factory=dict)
    unread: Mapping[Kind, tuple[str, ...]] = field(default_factory=dict)


def planned(before: Plan, served: ServedResources, now: Moment, hold: timedelta) -> Plan:
    """Return what is to be watched after a server has said what it serves.

    A kind that was watched and is served no more is watched on until it has been missing for `hold`; one of
    which the server does not know is watched on as it was.
    """
    watched, missing = dict(CORE), dict[Kind, Moment]()
    unread: dict[Kind, tuple[str, ...]] = {}
    for kind in POLICY:
        had = before.watched.get(kind)
        if (best := newest(kind, served)) is not None:
            watched[kind] = best
        elif others := served.of(kind.group, kind.name):
            unread[kind] = tuple(each.version for each in others)
        if kind in watched or had is None:
            continue
        since = before.missing.get(kind, now)
        if kind in unread or kind.group in served.unknown:
            watched[kind] = had
        elif now - since < hold:
            watched[kind], missing[kind] = had, since
    return Plan(watched, missing, unread)
