"""Watched kinds of a cluster, each in one served version.

The watched kinds are Namespace, Service, EndpointSlice, Pod, ServiceAccount, and every policy kind with an
installed CRD. This includes policy that is known but not enforced (specs.osm.unenforced_policy), so that its
owners get a warning.

Controllers of Pods, for example Deployments, are not watched. They are read from files, to check manifests
before anything runs; in a cluster the Pods themselves have more and truer information. Endpoints are not
watched either, because the API server also has them as EndpointSlices.

A cluster can serve a kind in several versions, each with all objects. The newest version with a reader is
watched. A kind that is no longer served counts as removed only after a while, because the discovery of a
server that has just started may be incomplete. After a real removal of a CRD the watch has already reported
the removal of its objects.
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
"""Kinds that every cluster serves."""

_OF_KUBERNETES: Final = frozenset({"", "apps", "batch", ENDPOINT_SLICE.group})
"""Groups without a CRD."""

POLICY: Final[tuple[Kind, ...]] = tuple(
    sorted(kind for kind in (*READ, *UNENFORCED) if kind.group not in _OF_KUBERNETES)
)
"""Kinds that a cluster serves if their CRD is installed: read, or known and not enforced."""

GROUPS: Final = tuple(sorted({kind.group for kind in POLICY}))
"""API groups of POLICY, for discovery."""


def kind_of(resource: Resource) -> Kind:
    """Return the mesh's kind for a resource of the API server."""
    return Kind(resource.kind, resource.group)


def newest(kind: Kind, served: ServedResources) -> Resource | None:
    """Return the newest served version of a kind that Meshwright can read, or None.

    For example, a cluster serves TrafficSplit in v1alpha2 and v1alpha4: the result has version v1alpha4.
    """
    reader = READ.get(kind)
    known = (
        resource
        for resource in served.versions_of_kind(kind.group, kind.name)
        if reader is None or resource.version in reader.versions
    )
    return next(known, None)


@dataclass(frozen=True, slots=True)
class Plan:
    """The kinds to watch.

    `missing` are watched kinds without a served version, with the moment since when. `unread` are kinds that
    are served only in versions without a reader, with these versions; their last known objects stay.
    """

    watched: Mapping[Kind, Resource] = field(default_factory=lambda: dict(CORE))
    missing: Mapping[Kind, Moment] = field(default_factory=dict)
    unread: Mapping[Kind, tuple[str, ...]] = field(default_factory=dict)


def planned(before: Plan, served: ServedResources, now: Moment, hold: timedelta) -> Plan:
    """Return the kinds to watch after a discovery.

    A watched kind is still watched after its removal, for the time `hold`. If discovery has failed for its
    group, the kind stays watched.
    """
    watched, missing = dict(CORE), dict[Kind, Moment]()
    unread: dict[Kind, tuple[str, ...]] = {}
    for kind in POLICY:
        had = before.watched.get(kind)
        if (best := newest(kind, served)) is not None:
            watched[kind] = best
        elif others := served.versions_of_kind(kind.group, kind.name):
            unread[kind] = tuple(resource.version for resource in others)
        if kind in watched or had is None:
            continue
        since = before.missing.get(kind, now)
        if kind in unread or kind.group in served.unknown:
            watched[kind] = had
        elif now - since < hold:
            watched[kind], missing[kind] = had, since
    return Plan(watched, missing, unread)
