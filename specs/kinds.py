"""Which kinds are read, in which versions and by whom, and whose the others are.

A kind is its API group and its name: others may call something of theirs a Service or a TCPRoute.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from mesh.objects import MeshObject
from specs.core.endpoints import endpoint_slice, endpoints, pod
from specs.core.pod_template import cron_job, pod_template, template_object
from specs.core.services import namespace, service, service_account
from specs.manifest import Manifest
from specs.osm.mesh_config import mesh_config
from specs.osm.unenforced import UNENFORCED
from specs.own.workload import workload
from specs.smi.access import traffic_target
from specs.smi.routes import http_route_group, tcp_route, udp_route
from specs.smi.split import traffic_split

V1_TO_4 = ("v1alpha1", "v1alpha2", "v1alpha3", "v1alpha4")
_APPS = ("v1", "v1beta2", "v1beta1")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that is read: its API group, name, versions, drafts refused by name, and reader."""

    group: str
    name: str
    versions: tuple[str, ...]
    read: Callable[[Manifest], MeshObject | None]
    drafts: tuple[str, ...] = ()

    @property
    def api_versions(self) -> tuple[str, ...]:
        """Return what may stand in apiVersion."""
        return tuple(f"{self.group}/{version}" if self.group else version for version in self.versions)


_KINDS: Final = (
    Kind("access.smi-spec.io", "TrafficTarget", V1_TO_4[:3], traffic_target, drafts=("v1alpha4",)),
    Kind("specs.smi-spec.io", "HTTPRouteGroup", V1_TO_4, http_route_group),
    Kind("specs.smi-spec.io", "TCPRoute", V1_TO_4, tcp_route),
    Kind("specs.smi-spec.io", "UDPRoute", V1_TO_4[3:], udp_route),
    Kind("split.smi-spec.io", "TrafficSplit", V1_TO_4, traffic_split),
    Kind("config.openservicemesh.io", "MeshConfig", V1_TO_4[:3], mesh_config),
    Kind("meshwright.dev", "Workload", ("v1alpha1",), workload),
    Kind("", "Namespace", ("v1",), namespace),
    Kind("", "ServiceAccount", ("v1",), service_account),
    Kind("", "Service", ("v1",), service),
    Kind("", "Pod", ("v1",), pod),
    Kind("", "Endpoints", ("v1",), endpoints),
    Kind("", "PodTemplate", ("v1",), template_object),
    Kind("", "ReplicationController", ("v1",), pod_template),
    Kind("apps", "DaemonSet", _APPS, pod_template),
    Kind("apps", "Deployment", _APPS, pod_template),
    Kind("apps", "ReplicaSet", _APPS, pod_template),
    Kind("apps", "StatefulSet", _APPS, pod_template),
    Kind("batch", "CronJob", ("v1", "v1beta1"), cron_job),
    Kind("batch", "Job", ("v1",), pod_template),
    Kind("discovery.k8s.io", "EndpointSlice", ("v1", "v1beta1"), endpoint_slice),
)

READ: Final[Mapping[tuple[str, str], Kind]] = {(kind.group, kind.name): kind for kind in _KINDS}
"""What is read, by API group and kind."""

_MORE: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(
        {
            "Binding",
            "ComponentStatus",
            "ConfigMap",
            "Event",
            "LimitRange",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "ResourceQuota",
            "Secret",
        }
    ),
    "apps": frozenset({"ControllerRevision"}),
    "metrics.smi-spec.io": frozenset({"TrafficMetrics"}),
}
"""The other kinds of groups that are known as a whole: no part of a mesh."""

_DOMAINS: Final = ("smi-spec.io", "openservicemesh.io", "meshwright.dev")
_GROUPS: Final = frozenset(group for group, _ in READ)
_NAMES: Final = frozenset(name for _, name in (*READ, *UNENFORCED))
_LIKE: Final = 0.85
"""How much a group must look like one of a mesh to be taken for that with a slip in it."""


def is_foreign(group: str, name: str) -> bool:
    """Say whether a kind is no part of a mesh, whatever it is called.

    A kind that its group does not have is not foreign where the group is one whose kinds are known, nor where
    the name is one of ours and the group like one of ours but for a slip: no policy is passed over for that.
    """
    if name in _MORE.get(group, ()):
        return True
    if group in _GROUPS or group.endswith(_DOMAINS):
        return False
    ours = [each for each in _GROUPS if each.endswith(_DOMAINS)]
    return name not in _NAMES or not difflib.get_close_matches(group, ours, n=1, cutoff=_LIKE)


def api_versions_of(name: str) -> tuple[str, ...]:
    """Return what may stand in apiVersion for kinds of that name; of those that are not read, the group."""
    read = (each for kind in _KINDS if kind.name == name for each in kind.api_versions)
    return (*read, *sorted(group for group, each in UNENFORCED if each == name))


def kinds_of(group: str) -> tuple[str, ...]:
    """Return the names of a group's kinds that are known, sorted."""
    known = (*READ, *UNENFORCED, *((each, name) for each, names in _MORE.items() for name in names))
    return tuple(sorted(name for each, name in known if each == group))
