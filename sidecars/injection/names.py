"""Names and places that a patched pod has, and by which it is known as one."""

from typing import Final

SIDECAR_CONTAINER: Final = "meshwright-sidecar"
INIT_CONTAINER: Final = "meshwright-init"

CREDENTIALS_VOLUME: Final = "meshwright-credentials"
RUN_VOLUME: Final = "meshwright-run"
POD_VOLUME: Final = "meshwright-pod"
VOLUMES: Final = (CREDENTIALS_VOLUME, RUN_VOLUME, POD_VOLUME)

CREDENTIALS_DIRECTORY: Final = "/etc/meshwright/credentials"
RUN_DIRECTORY: Final = "/run/meshwright"
POD_DIRECTORY: Final = "/etc/meshwright/pod"
PROBES_FILE: Final = "probes.json"

PROXY_UUID_LABEL: Final = "meshwright.dev/proxy-uuid"
MESH_ANNOTATION: Final = "meshwright.dev/mesh"
DRIVER_ANNOTATION: Final = "meshwright.dev/injected-driver"
PROBES_ANNOTATION: Final = "meshwright.dev/probes"
"""The probes that the agent carries out, by its paths, as the pod's author wrote them (ports are numbers)."""
ORIGINALS_ANNOTATION: Final = "meshwright.dev/original-probes"
"""The probes that were rewritten, word for word, by container and field: to take the sidecar out."""

CONTROL_PLANE_SERVICE: Final = "meshwright"
"""The Service in the control plane's namespace at which its drivers listen."""


def secret_name(uuid: str) -> str:
    """Return the name of the Secret that holds a proxy's credentials."""
    return f"meshwright-proxy-{uuid}"
