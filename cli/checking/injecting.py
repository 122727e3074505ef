"""What the injector of a cluster goes by: its configuration, the MeshConfig, and the cluster's version."""

from typing import Final

from cli.checking.asking import Asking
from cli.checking.pods import Injection, config_of
from injector.configuration import CONFIG_MAP
from kube.builtin import CONFIG_MAPS
from kube.errors import ApiError
from kube.resource import Resource
from mesh.config import MeshConfig
from mesh.kinds import MESH_CONFIG
from mesh.origins import InFile
from sidecars.registry import DriverRegistry
from specs.kinds import READ
from specs.shown import read_shown

_CONFIGS: Final = Resource(MESH_CONFIG.group, READ[MESH_CONFIG].versions[1], "meshconfigs", MESH_CONFIG.name)


async def injection_of(asking: Asking, home: str, version: tuple[int, int]) -> Injection:
    """Return what the injector would do; raise ConfigurationError, KubeError, or DriverError."""
    raw = await asking.one(CONFIG_MAPS, home, CONFIG_MAP)
    drivers = DriverRegistry.discover().drivers
    return Injection(config_of(raw, home), drivers, await mesh_config(asking, home), version)


async def mesh_config(asking: Asking, home: str) -> MeshConfig:
    """Return the MeshConfig of a control plane, the defaults without; raise KubeError."""
    try:
        found = (await asking.api.list(_CONFIGS, home))["items"]
    except ApiError as error:
        if not error.is_not_found:
            raise
        return MeshConfig()
    for raw in sorted(found, key=lambda each: str(each["metadata"]["name"])):
        document = {**raw, "apiVersion": _CONFIGS.api_version, "kind": _CONFIGS.kind}
        for _, value in read_shown(document, InFile("")).objects:
            if isinstance(value, MeshConfig):
                return value
    return MeshConfig()
