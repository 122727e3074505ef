"""Policy of OSM and its successor that is known and not enforced here: what traffic meets instead.

A kind that somebody relies on must not be passed over like one that has nothing to do with a mesh.
"""

from collections.abc import Mapping
from typing import Final

_CONFIG: Final = "config.openservicemesh.io"
_POLICY: Final = "policy.openservicemesh.io"
_PLUGIN: Final = "plugin.flomesh.io"
_CLUSTERS: Final = "flomesh.io"

_OUTSIDE: Final = (
    "connections from outside the mesh are refused by the backends' sidecars, whoever this lets in"
)
_FILTERS: Final = "no filter of it runs in a sidecar"
_ELSEWHERE: Final = "services of other clusters are not known"

UNENFORCED: Final[Mapping[tuple[str, str], str]] = {
    (_POLICY, "AccessCert"): "no certificate is issued for clients outside the mesh",
    (_POLICY, "AccessControl"): _OUTSIDE,
    (_POLICY, "Backpressure"): "the number of connections is not limited",
    (_POLICY, "Egress"): (
        "traffic to its hosts is treated as all that leaves the mesh: passed where the MeshConfig has "
        "spec.traffic.enableEgress, else refused"
    ),
    (_POLICY, "EgressGateway"): "traffic leaves the mesh from the clients' own sidecars, if at all",
    (_POLICY, "IngressBackend"): _OUTSIDE,
    (_POLICY, "Retry"): "sidecars repeat no request that has failed",
    (_POLICY, "Telemetry"): "access logs are the same for all sidecars",
    (_POLICY, "UpstreamTrafficSetting"): "neither connections nor requests nor their rate are limited",
    (_CONFIG, "ExtensionService"): "no sidecar calls it",
    (_CONFIG, "MeshRootCertificate"): (
        "certificates are issued by this control plane's own authority, in its own trust domain"
    ),
    (_CONFIG, "MultiClusterService"): _ELSEWHERE,
    (_CONFIG, "OsmConfig"): "it was the MeshConfig's first form; the mesh is configured by a MeshConfig",
    (_PLUGIN, "Plugin"): _FILTERS,
    (_PLUGIN, "PluginChain"): _FILTERS,
    (_PLUGIN, "PluginConfig"): _FILTERS,
    (_CLUSTERS, "GlobalTrafficPolicy"): _ELSEWHERE,
    (_CLUSTERS, "ServiceExport"): _ELSEWHERE,
    (_CLUSTERS, "ServiceImport"): _ELSEWHERE,
}
"""What holds in place of each kind, by API group and kind; any version of it."""

PRESETS: Final = "preset-mesh-config"
"""The ConfigMap from which OSM makes its MeshConfig when there is none."""


def not_enforced(instead: str) -> str:
    """Say that policy is not enforced, and what holds in its place."""
    return f"is not enforced here: {instead}"
