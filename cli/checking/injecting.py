"""What the injector of a cluster goes by: its configuration, the MeshConfig, and the cluster's version."""

from cli.checking.asking import Asking
from cli.checking.pods import Injection, config_of
from injector.place import CONFIG_MAP
from kube.builtin import CONFIG_MAPS
from kube.discovery import served
from mesh.config import MeshConfig
from mesh.kinds import MESH_CONFIG
from mesh.origins import InFile
from providers.kubernetes.resources import newest
from sidecars.registry import DriverRegistry
from specs.shown import read_shown


async def injection_of(asking: Asking, home: str, version: tuple[int, int]) -> Injection:
    """Return what the injector would do; raise ConfigurationError, KubeError, or DriverError."""
    raw = await asking.one(CONFIG_MAPS, home, CONFIG_MAP)
    drivers = DriverRegistry.discover().drivers
    return Injection(config_of(raw, home), drivers, await mesh_config(asking, home), version)


async def mesh_config(asking: Asking, home: str) -> MeshConfig:
    """Return the MeshConfig of a control plane, the defaults without; raise KubeError."""
    resource = newest(MESH_CONFIG, await served(asking.api, {MESH_CONFIG.group}))
    if resource is None:
        return MeshConfig()
    found = (await asking.api.list(resource, home))["items"]
    for raw in sorted(found, key=lambda each: str(each["metadata"]["name"])):
        document = {**raw, "apiVersion": resource.api_version, "kind": resource.kind}
        for _, value in read_shown(document, InFile("")).objects:
            if isinstance(value, MeshConfig):
                return value
    return MeshConfig()
