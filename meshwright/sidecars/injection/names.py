"""Names and paths in a patched pod, which also identify a pod as patched."""

from typing import Final

SIDECAR_CONTAINER: Final = "meshwright-sidecar"
INIT_CONTAINER: Final = "meshwright-init"

CREDENTIALS_VOLUME: Final = "meshwright-credentials"
RUN_VOLUME: Final = "meshwright-run"
POD_VOLUME: Final = "meshwright-pod"
TOKEN_VOLUME: Final = "meshwright-token"  # noqa: S105 - a volume's name
ROOTS_VOLUME: Final = "meshwright-roots"
VOLUMES: Final = (CREDENTIALS_VOLUME, RUN_VOLUME, POD_VOLUME, TOKEN_VOLUME, ROOTS_VOLUME)

CREDENTIALS_DIRECTORY: Final = "/etc/meshwright/credentials"
RUN_DIRECTORY: Final = "/run/meshwright"
POD_DIRECTORY: Final = "/etc/meshwright/pod"
TOKEN_DIRECTORY: Final = "/var/run/secrets/meshwright"  # noqa: S105 - a directory
ROOTS_DIRECTORY: Final = "/etc/meshwright/roots"
PROBES_FILE: Final = "probes.json"
TOKEN_FILE: Final = "token"  # noqa: S105 - a file's name

PROXY_UUID_LABEL: Final = "meshwright.dev/proxy-uuid"
MESH_ANNOTATION: Final = "meshwright.dev/mesh"
DRIVER_ANNOTATION: Final = "meshwright.dev/injected-driver"
PROBES_ANNOTATION: Final = "meshwright.dev/probes"
"""The original calls of probes and hooks by the agent's path, with numeric ports; the agent reads them."""
ORIGINALS_ANNOTATION: Final = "meshwright.dev/original-probes"
"""The rewritten probes and hooks, unchanged, by container and field; used to restore the pod."""
SCRAPED_ANNOTATION: Final = "meshwright.dev/original-scraping"
"""The author's replaced annotations for scraping, as JSON; used to restore the pod."""
RESOURCES_ANNOTATION: Final = "meshwright.dev/original-resources"
"""The pod-level resources with and without the sidecar; used to restore the pod."""
OWN_ANNOTATION: Final = "meshwright.dev/own-containers"
"""The author's own containers under injected names, unchanged, with their positions."""
ROOTS_ANNOTATION: Final = "meshwright.dev/joining-roots"
"""CA certificates (PEM) with which the agent verifies the control plane when it enrols."""
REASON_ANNOTATION: Final = "meshwright.dev/injection"
"""The reason for which the pod has a sidecar."""
INTERCEPTION_ANNOTATION: Final = "meshwright.dev/interception"
"""The rules for the node's CNI plug-in to set, as options of `meshwright intercept`."""
ADDED_ANNOTATION: Final = "meshwright.dev/injected"
"""The injected parts by field and name; its presence means that the pod has a sidecar."""
INBOUND_PORTS: Final = "openservicemesh.io/inbound-port-exclusion-list"
METRICS: Final = "openservicemesh.io/metrics"
ENABLED: Final = "enabled"
SCRAPING: Final = "prometheus.io/"
"""Prefix of the annotations by which a Prometheus with the usual configuration scrapes a pod."""
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"

CONTROL_PLANE_SERVICE: Final = "meshwright"
"""Name of the Service at which drivers listen, in the control plane's namespace."""


def secret_name(uuid: str) -> str:
    """Return the name of the Secret with a proxy's credentials."""
    return f"meshwright-proxy-{uuid}"
