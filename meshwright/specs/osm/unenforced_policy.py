"""Known policy of OSM and its successor that is not enforced, with the alternative.

Users may rely on these kinds, so they get a warning, unlike kinds that have nothing to do with a mesh.
"""

from collections.abc import Mapping
from typing import Final

from meshwright.mesh.kinds import Kind

_CONFIG: Final = "config.openservicemesh.io"
_POLICY: Final = "policy.openservicemesh.io"
_PLUGIN: Final = "plugin.flomesh.io"
_CLUSTERS: Final = "flomesh.io"

_FILTERS: Final = "sidecars do not run filters from plugins"
_ELSEWHERE: Final = "the mesh does not know services of other clusters"

UNENFORCED: Final[Mapping[Kind, str]] = {
    Kind("AccessCert", _POLICY): "the mesh issues no certificates for clients outside the mesh",
    Kind("AccessControl", _POLICY): (
        "sidecars refuse connections from outside the mesh even if this object allows them; "
        "write an IngressBackend to allow them"
    ),
    Kind("Backpressure", _POLICY): "connections are not limited by this object; write an "
    "UpstreamTrafficSetting to limit them",
    Kind(
        "EgressGateway", _POLICY
    ): "traffic leaves the mesh from the sidecars of the clients; write an Egress to allow it",
    Kind("MultiClusterService", _CONFIG): _ELSEWHERE,
    Kind("OsmConfig", _CONFIG): "OsmConfig is the oldest form of MeshConfig; write a MeshConfig instead",
    Kind("Plugin", _PLUGIN): _FILTERS,
    Kind("PluginChain", _PLUGIN): _FILTERS,
    Kind("PluginConfig", _PLUGIN): _FILTERS,
    Kind("GlobalTrafficPolicy", _CLUSTERS): _ELSEWHERE,
    Kind("ServiceExport", _CLUSTERS): _ELSEWHERE,
    Kind("ServiceImport", _CLUSTERS): _ELSEWHERE,
}
"""Alternative for each kind, in any version."""

PRESETS: Final = "preset-mesh-config"
"""ConfigMap from which OSM creates its MeshConfig."""


def not_enforced(instead: str) -> str:
    """Return the message for a policy that Meshwright does not enforce, with the alternative."""
    return f"is not enforced by Meshwright: {instead}"
