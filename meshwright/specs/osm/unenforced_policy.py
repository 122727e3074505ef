"""Policy of OSM and its successor that is known and not enforced here: what traffic meets instead.

A kind that somebody relies on must not be passed over like one that has nothing to do with a mesh.
"""

from collections.abc import Mapping
from typing import Final

from meshwright.mesh.kinds import Kind

_CONFIG: Final = "config.openservicemesh.io"
_POLICY: Final = "policy.openservicemesh.io"
_PLUGIN: Final = "plugin.flomesh.io"
_CLUSTERS: Final = "flomesh.io"

_FILTERS: Final = "no filter of it runs in a sidecar"
_ELSEWHERE: Final = "services of other clusters are not known"

UNENFORCED: Final[Mapping[Kind, str]] = {
    Kind("AccessCert", _POLICY): "no certificate is issued for clients outside the mesh",
    Kind("AccessControl", _POLICY): (
        "connections from outside the mesh are refused by the backends' sidecars, whoever this lets in; "
        "an IngressBackend lets them in"
    ),
    Kind("Backpressure", _POLICY): "the number of connections is not limited",
    Kind("EgressGateway", _POLICY): "traffic leaves the mesh from the clients' own sidecars, if at all",
    Kind("MultiClusterService", _CONFIG): _ELSEWHERE,
    Kind("OsmConfig", _CONFIG): "it was the MeshConfig's first form; the mesh is configured by a MeshConfig",
    Kind("Plugin", _PLUGIN): _FILTERS,
    Kind("PluginChain", _PLUGIN): _FILTERS,
    Kind("PluginConfig", _PLUGIN): _FILTERS,
    Kind("GlobalTrafficPolicy", _CLUSTERS): _ELSEWHERE,
    Kind("ServiceExport", _CLUSTERS): _ELSEWHERE,
    Kind("ServiceImport", _CLUSTERS): _ELSEWHERE,
}
"""What holds in place of each kind, by kind; any version of it."""

PRESETS: Final = "preset-mesh-config"
"""The ConfigMap from which OSM makes its MeshConfig when there is none."""


def not_enforced(instead: str) -> str:
    """Say that policy is not enforced, and what holds in its place."""
    return f"is not enforced here: {instead}"
