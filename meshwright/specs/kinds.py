"""Table of readers by kind and version, and the classification of all other kinds."""

import difflib
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.kinds import (
    BACKEND_TLS_POLICY,
    CLIENT_TRAFFIC_POLICY,
    CONFIG_MAP,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    EGRESS,
    ENDPOINT_SLICE,
    ENDPOINTS,
    EXTENSION_SERVICE,
    EXTERNAL_AUTHORIZATION,
    GATEWAY,
    GATEWAY_API,
    GATEWAY_CLASS,
    GATEWAY_TCP_ROUTE,
    GRPC_ROUTE,
    HTTP_ROUTE,
    HTTP_ROUTE_GROUP,
    INGRESS_BACKEND,
    JOB,
    LISTENER_SET,
    MESH_CONFIG,
    MESH_ROOT_CERTIFICATE,
    MUTUAL_TLS,
    NAMESPACE,
    POD,
    POD_TEMPLATE,
    REFERENCE_GRANT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RETRY,
    ROUTE_POLICY,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    TCP_ROUTE,
    TELEMETRY,
    TLS_ROUTE,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
    UDP_ROUTE,
    UPSTREAM_POLICY,
    UPSTREAM_TRAFFIC_SETTING,
    WORKLOAD,
    Kind,
)
from meshwright.mesh.objects import MeshObject
from meshwright.mesh.problems.spelling import nearest
from meshwright.specs.core.config_maps import ca_bundle
from meshwright.specs.core.endpoints import endpoint_slice, endpoints, pod
from meshwright.specs.core.pod_template import cron_job, pod_template, scaled_template, template_object
from meshwright.specs.core.secrets import tls_secret
from meshwright.specs.core.services import namespace, service, service_account
from meshwright.specs.gateway.backends.backend_tls import backend_tls_policy
from meshwright.specs.gateway.classes import gateway_class
from meshwright.specs.gateway.gateways import gateway, listener_set
from meshwright.specs.gateway.grants import reference_grant
from meshwright.specs.gateway.routes import grpc_route, http_route, tls_route
from meshwright.specs.gateway.routes import tcp_route as gateway_tcp_route
from meshwright.specs.manifest import Manifest, split_api_version
from meshwright.specs.osm.egress import egress
from meshwright.specs.osm.ingress import ingress_backend
from meshwright.specs.osm.mesh_config import mesh_config
from meshwright.specs.osm.retry import retry
from meshwright.specs.osm.root_certificate import mesh_root_certificate
from meshwright.specs.osm.telemetry import extension_service, telemetry
from meshwright.specs.osm.unenforced_policy import UNENFORCED
from meshwright.specs.osm.upstream_traffic import upstream_traffic_setting
from meshwright.specs.own.workload import workload
from meshwright.specs.policy.client_traffic import client_traffic_policy
from meshwright.specs.policy.external_authorization import external_authorization
from meshwright.specs.policy.mutual_tls import mutual_tls
from meshwright.specs.policy.route_policy import route_policy
from meshwright.specs.policy.upstream_policy import upstream_policy
from meshwright.specs.smi.access import traffic_target
from meshwright.specs.smi.routes import http_route_group, tcp_route, udp_route
from meshwright.specs.smi.split import traffic_split

V1_TO_4 = ("v1alpha1", "v1alpha2", "v1alpha3", "v1alpha4")
_APPS = ("v1", "v1beta2", "v1beta1")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reader of a kind, with the versions it reads; draft versions are refused with their own message.

    `keeps_last_form` is False if an object whose newest form is refused is out of force at once. Routes of
    the Gateway API and ReferenceGrants are such objects, because they open a way: a kept form could keep a
    way open that the owner has just closed. A Gateway opens nothing without routes, and without it the whole
    edge is closed.
    """

    kind: Kind
    versions: tuple[str, ...]
    read: Callable[[Manifest], MeshObject | None]
    drafts: tuple[str, ...] = ()
    keeps_last_form: bool = True

    @property
    def api_versions(self) -> tuple[str, ...]:
        """Return the values of apiVersion that the reader accepts."""
        group = self.kind.group
        return tuple(f"{group}/{version}" if group else version for version in self.versions)


_READERS: Final = (
    Reader(TRAFFIC_TARGET, V1_TO_4[:3], traffic_target, drafts=("v1alpha4",)),
    Reader(HTTP_ROUTE_GROUP, V1_TO_4, http_route_group),
    Reader(TCP_ROUTE, V1_TO_4, tcp_route),
    Reader(UDP_ROUTE, V1_TO_4[3:], udp_route),
    Reader(TRAFFIC_SPLIT, V1_TO_4, traffic_split),
    Reader(MESH_CONFIG, V1_TO_4[:3], mesh_config),
    Reader(MESH_ROOT_CERTIFICATE, V1_TO_4[1:2], mesh_root_certificate),
    Reader(RETRY, V1_TO_4[:1], retry),
    Reader(UPSTREAM_TRAFFIC_SETTING, V1_TO_4[:1], upstream_traffic_setting),
    Reader(EGRESS, V1_TO_4[:1], egress),
    Reader(INGRESS_BACKEND, V1_TO_4[:1], ingress_backend),
    Reader(TELEMETRY, V1_TO_4[:1], telemetry),
    Reader(EXTENSION_SERVICE, V1_TO_4[1:2], extension_service),
    Reader(WORKLOAD, ("v1alpha1",), workload),
    Reader(ROUTE_POLICY, ("v1alpha1",), route_policy),
    Reader(UPSTREAM_POLICY, ("v1alpha1",), upstream_policy),
    Reader(EXTERNAL_AUTHORIZATION, ("v1alpha1",), external_authorization),
    Reader(MUTUAL_TLS, ("v1alpha1",), mutual_tls),
    Reader(CLIENT_TRAFFIC_POLICY, ("v1alpha1",), client_traffic_policy),
    Reader(HTTP_ROUTE, ("v1", "v1beta1"), http_route, keeps_last_form=False),
    Reader(GRPC_ROUTE, ("v1",), grpc_route, keeps_last_form=False),
    Reader(TLS_ROUTE, ("v1", "v1alpha3", "v1alpha2"), tls_route, keeps_last_form=False),
    Reader(GATEWAY_TCP_ROUTE, ("v1", "v1alpha2"), gateway_tcp_route, keeps_last_form=False),
    Reader(REFERENCE_GRANT, ("v1", "v1beta1"), reference_grant, keeps_last_form=False),
    Reader(GATEWAY_CLASS, ("v1", "v1beta1"), gateway_class),
    Reader(GATEWAY, ("v1", "v1beta1"), gateway),
    Reader(LISTENER_SET, ("v1",), listener_set),
    Reader(BACKEND_TLS_POLICY, ("v1", "v1alpha3"), backend_tls_policy),
    Reader(NAMESPACE, ("v1",), namespace),
    Reader(SERVICE_ACCOUNT, ("v1",), service_account),
    Reader(SECRET, ("v1",), tls_secret),
    Reader(CONFIG_MAP, ("v1",), ca_bundle),
    Reader(SERVICE, ("v1",), service),
    Reader(POD, ("v1",), pod),
    Reader(ENDPOINTS, ("v1",), endpoints),
    Reader(POD_TEMPLATE, ("v1",), template_object),
    Reader(REPLICATION_CONTROLLER, ("v1",), scaled_template),
    Reader(DAEMON_SET, _APPS, pod_template),
    Reader(DEPLOYMENT, _APPS, scaled_template),
    Reader(REPLICA_SET, _APPS, scaled_template),
    Reader(STATEFUL_SET, _APPS, scaled_template),
    Reader(CRON_JOB, ("v1", "v1beta1"), cron_job),
    Reader(JOB, ("v1",), pod_template),
    Reader(ENDPOINT_SLICE, ("v1", "v1beta1"), endpoint_slice),
)

READ: Final[Mapping[Kind, Reader]] = {item.kind: item for item in _READERS}
"""Readers by kind."""

_MORE: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(
        {
            "Binding",
            "ComponentStatus",
            "Event",
            "LimitRange",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "ResourceQuota",
        }
    ),
    "apps": frozenset({"ControllerRevision"}),
    "metrics.smi-spec.io": frozenset({"TrafficMetrics"}),
    GATEWAY_API: frozenset({UDP_ROUTE.name}),
}
"""Other kinds of known groups, which are not part of a mesh."""

_DOMAINS: Final = ("smi-spec.io", "openservicemesh.io", "meshwright.dev")
_OURS: Final = (*READ, *UNENFORCED)
_GROUPS: Final = frozenset(kind.group for kind in READ)
_NAMES: Final = frozenset(kind.name for kind in _OURS)
KNOWN_GROUPS: Final = tuple(sorted({kind.group for kind in _OURS}))
"""Groups of all known kinds, enforced or not; `kinds_of` returns their kinds."""
_LONGEST_GROUP: Final = 100
_LIKE: Final = 0.85
"""Minimum similarity (0 to 1) of a group or kind to a known one to count as misspelt."""

_WITHOUT_DOT: Final = frozenset({"autoscaling", "extensions", "policy"})
"""Other groups of Kubernetes without a dot in the name; all further groups have a dot."""

_REMEMBERED: Final = 256
"""Number of cached kinds; a mesh has few different ones."""


@functools.lru_cache(_REMEMBERED)
def is_foreign(kind: Kind) -> bool:
    """Return whether a kind is certainly not part of a mesh.

    An unknown kind in a known group is not foreign, because the name must be wrong. A kind with the name of
    one of ours, in a misspelt group, is not foreign either. In this way a misspelt policy is reported instead
    of ignored.
    """
    if kind.name in _MORE.get(kind.group, ()):
        return True
    if kind.group in _GROUPS or kind.group.endswith(_DOMAINS):
        return False
    # A misspelt policy, such as TraficTarget, must be an error, because access would silently differ
    # without it.
    name = nearest(kind.name.removesuffix("List"), _NAMES, _LIKE)
    if name is None:
        return True
    if "." not in kind.group and kind.group not in _WITHOUT_DOT:
        return False
    return nearest(kind.group, {item.group for item in _called(name)}, _LIKE) is None


def kind_meant(name: str, api_version: object) -> Kind:
    """Return the intended kind of a document, for a missing or misspelt kind or group.

    With this, an object whose newest form is misspelt is still recognised as the same object.
    """
    return _kind_meant(name, api_version if isinstance(api_version, str) else "")


@functools.lru_cache(_REMEMBERED)
def _kind_meant(name: str, api_version: str) -> Kind:
    kind = Kind(name, split_api_version(api_version)[0])
    if kind in READ or is_foreign(kind):
        return kind
    ours = name if _called(name) else nearest(name, kinds_of(kind.group)) or nearest(name, _NAMES, _LIKE)
    if ours is None:
        return kind
    # SequenceMatcher caches the analysis of `b`, so the fixed text is `b`. Its length is bounded, because
    # the time of a comparison grows faster than the length.
    likeness = difflib.SequenceMatcher(b=kind.group[:_LONGEST_GROUP])
    meant = (item for item in _called(ours) or (Kind(ours, kind.group),))
    return max(meant, key=lambda item: _ratio(likeness, item.group))


def api_versions_of(name: str) -> tuple[str, ...]:
    """Return the accepted apiVersions for kinds of this name; for kinds that are not enforced, the group."""
    read = (
        api_version
        for kind, reader in READ.items()
        if kind.name == name
        for api_version in reader.api_versions
    )
    return (*read, *sorted(kind.group for kind in UNENFORCED if kind.name == name))


def kinds_of(group: str) -> tuple[str, ...]:
    """Return the names of a group's known kinds, sorted."""
    known = (*_OURS, *(Kind(name, item) for item, names in _MORE.items() for name in names))
    return tuple(sorted(kind.name for kind in known if kind.group == group))


def _ratio(likeness: difflib.SequenceMatcher[str], group: str) -> float:
    likeness.set_seq1(group)
    return likeness.ratio()


def _called(name: str) -> tuple[Kind, ...]:
    """Return the kinds known to Meshwright with this name, in any API group."""
    return tuple(kind for kind in _OURS if kind.name == name)
