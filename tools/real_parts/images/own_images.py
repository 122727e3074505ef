"""Images of the Dockerfile's targets, made from files of this machine without a container engine.

Entry point, command and user are equal to the Dockerfile's; a test compares. The contents are the wheel's,
with this machine's Python, Envoy and iptables in place of Debian's.
"""

import functools
from dataclasses import replace
from pathlib import Path
from typing import Final

from tools.real_parts.images.archives import PATH, Image, iptables, program, tree
from tools.real_parts.images.bytecode import compiled
from tools.real_parts.images.environments import HOME, compiled_environment
from tools.real_parts.images.layers import Files, Folder

CONTROL_PLANE: Final = "docker.io/meshwright/control-plane:{}"
PROXY: Final = "docker.io/meshwright/proxy:{}"
"""Full image names of the chart with a container engine's default registry; `{}` is the tag."""
CONTROL_PLANE_UID: Final = 1337
PROXY_UID: Final = 1500

_RELEASE: Final = "/opt/release"
"""Path of the packages of another release in an image."""

_LICENSE: Final = {"org.opencontainers.image.licenses": "Apache-2.0"}
_TITLE: Final = "org.opencontainers.image.title"
_PYTHON: Final = {
    "PATH": f"{HOME}/bin:{PATH}",
    "PYTHONSAFEPATH": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


@functools.cache
def envoy_layer(envoy: Path) -> Files:
    """Return the files of a layer with this Envoy."""
    return program(envoy, "/usr/local/bin/envoy")


def control_plane(tag: str) -> Image:
    """Return the image of the control plane."""
    return Image(
        CONTROL_PLANE.format(tag),
        {"/mesh": Folder(0o755), "/state": Folder(0o700, CONTROL_PLANE_UID)},
        entrypoint=("meshwright",),
        command=("serve",),
        environment={**_PYTHON, "MESHWRIGHT_MESH": "/mesh", "MESHWRIGHT_STATE": "/state"},
        user=f"{CONTROL_PLANE_UID}:{CONTROL_PLANE_UID}",
        labels={_TITLE: "Meshwright's control plane", **_LICENSE},
        below=(compiled_environment(),),
    )


def proxy(tag: str, envoy: Path) -> Image:
    """Return the image of the sidecar with this Envoy."""
    return Image(
        PROXY.format(tag),
        iptables(),
        entrypoint=("meshwright",),
        command=("agent",),
        environment=_PYTHON,
        user=f"{PROXY_UID}:{PROXY_UID}",
        labels={_TITLE: "Meshwright's sidecar", **_LICENSE},
        below=(compiled_environment(), envoy_layer(envoy)),
    )


def of_release(image: Image, folder: Path) -> Image:
    """Return an image that runs the packages of another release, from an unpacked archive.

    The packages come first in the import path, before the ones in the environment of the image.
    """
    environment = {**image.environment, "PYTHONPATH": _RELEASE}
    return replace(image, environment=environment, below=(*image.below, _release_layer(folder)))


@functools.cache
def _release_layer(folder: Path) -> Files:
    result = tree(folder, _RELEASE, ("bin",))
    return {**result, **compiled(result)}
