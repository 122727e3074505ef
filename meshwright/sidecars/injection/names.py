"""Names and places that a patched pod has, and by which it is known as one."""

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
"""The probes that the agent carries out, by its paths, as the pod's author wrote them (ports are numbers)."""
ORIGINALS_ANNOTATION: Final = "meshwright.dev/original-probes"
"""The probes and hooks that were rewritten, word for word, by container and field: for the way back."""
SCRAPED_ANNOTATION: Final = "meshwright.dev/original-scraping"
"""The author's own annotations of scraping that were exchanged, as JSON: for the way back."""
RESOURCES_ANNOTATION: Final = "meshwright.dev/original-resources"
"""What the pod as a whole asks for with the sidecar, and asked for without it: for the way back."""
OWN_ANNOTATION: Final = "meshwright.dev/own-containers"
"""The author's own containers of the sidecar's names, word for word, and where they stood."""
ROOTS_ANNOTATION: Final = "meshwright.dev/joining-roots"
"""The roots (PEM) by which the agent believes the control plane when it joins."""
REASON_ANNOTATION: Final = "meshwright.dev/injection"
"""Why the pod has a sidecar."""
INTERCEPTION_ANNOTATION: Final = "meshwright.dev/interception"
"""The rules that the node's CNI plug-in is to set, in the options of `meshwright intercept`."""
ADDED_ANNOTATION: Final = "meshwright.dev/injected"
"""What the pod has of the injection, by field and name; by it, a pod is known to have a sidecar."""
INBOUND_PORTS: Final = "openservicemesh.io/inbound-port-exclusion-list"
METRICS: Final = "openservicemesh.io/metrics"
ENABLED: Final = "enabled"
SCRAPING: Final = "prometheus.io/"
"""With this begin annotations by which a Prometheus with the usual configuration scrapes a pod."""
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"

CONTROL_PLANE_SERVICE: Final = "meshwright"
"""The Service in the control plane's namespace at which its drivers listen."""


def secret_name(uuid: str) -> str:
    """Return the name of the Secret that holds a proxy's credentials."""
    return f"meshwright-proxy-{uuid}"
