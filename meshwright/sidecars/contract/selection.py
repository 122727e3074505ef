"""Selection of a workload's driver, images and port. Pure.

The most specific setting wins: the workload's or else the namespace's (from `catalog.relations.groups`), then
MeshConfig's `sidecarClass`, then the environment. For an image, MeshConfig's mesh-wide value wins over the
driver's own entry, and the entry over the environment. The mesh-wide images belong to the mesh's default
driver; they are not used for another driver.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.config import SidecarDriverSettings, SidecarSettings
from meshwright.sidecars.contract.errors import DuplicateDriverError, UnknownDriverError

DEFAULT_CLASS: Final = "envoy"
CLASS_VARIABLE: Final = "MESHWRIGHT_SIDECAR_CLASS"
LINUX_VARIABLE: Final = "MESHWRIGHT_SIDECAR_IMAGE"
WINDOWS_VARIABLE: Final = "MESHWRIGHT_SIDECAR_WINDOWS_IMAGE"
INIT_VARIABLE: Final = "MESHWRIGHT_INIT_IMAGE"
VARIABLES: Final = frozenset({CLASS_VARIABLE, LINUX_VARIABLE, WINDOWS_VARIABLE, INIT_VARIABLE})


@dataclass(frozen=True, slots=True)
class Selection:
    """A driver's name, and the images of the sidecars; an image without any setting is ""."""

    driver: str
    linux_image: str
    windows_image: str
    init_image: str
    proxy_server_port: int


def select(
    config: SidecarSettings,
    environment: Mapping[str, str],
    ports: Mapping[str, int],
    named: str = "",
) -> Selection:
    """Select the driver of a workload. `named` is the driver of the workload or its namespace, or "".

    `ports` are the registered drivers with their default ports. Raises UnknownDriverError, which lists the
    registered names, and DuplicateDriverError if MeshConfig has two entries for one driver.
    """
    default = config.sidecar_class or environment.get(CLASS_VARIABLE) or DEFAULT_CLASS
    name = named or default
    if name not in ports:
        raise UnknownDriverError(f"sidecar driver {name!r} is unknown; known: {', '.join(sorted(ports))}")
    entry = _entry(config, name)
    # The mesh-wide images contain the default driver's proxy, so another driver must not run them.
    mesh_wide = config if name == default else SidecarSettings()
    return Selection(
        name,
        mesh_wide.linux_image or entry.linux_image or environment.get(LINUX_VARIABLE, ""),
        mesh_wide.windows_image or entry.windows_image or environment.get(WINDOWS_VARIABLE, ""),
        mesh_wide.init_image or entry.init_image or environment.get(INIT_VARIABLE, ""),
        entry.proxy_server_port or ports[name],
    )


def _entry(config: SidecarSettings, name: str) -> SidecarDriverSettings:
    result = [entry for entry in config.drivers if entry.name == name]
    if len(result) > 1:
        raise DuplicateDriverError(f"MeshConfig's sidecarDrivers name {name!r} {len(result)} times")
    return result[0] if result else SidecarDriverSettings(name)
