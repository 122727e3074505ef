"""Inputs of a cluster's injector: the configuration, the MeshConfig, and the version of Kubernetes."""

from collections.abc import Iterable

from catalog.store.view import MeshSettings, View
from meshwright.cli.checking.cluster.client import ClusterClient
from meshwright.cli.checking.cluster.pods import Injection, config_of
from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.config_file import only_in
from meshwright.kube.builtin import CONFIG_MAPS
from meshwright.kube.discovery import served
from meshwright.kube.resource import Raw, Resource
from meshwright.kubernetes.injection.configuration.configuration import ConfigurationError, InjectionConfig
from meshwright.kubernetes.injection.configuration.place import CONFIG_KEY, CONFIG_MAP, SETTINGS, ConfigMapKey
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import MESH_CONFIG
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.providers.kubernetes.resources import newest
from meshwright.sidecars.registry import DriverRegistry
from meshwright.specs.displayed_objects import read_shown


async def place_of(asking: ClusterClient, home: str) -> ConfigMapKey:
    """Return the ConfigMap with the configuration: the one in the control plane's settings, else the chart's.

    Raises ConfigurationError for invalid settings, and KubeError if reading is not permitted.
    """
    raw = await asking.one(CONFIG_MAPS, home, SETTINGS)
    what = f"ConfigMap {home}/{SETTINGS}, {CONFIG_KEY}"
    try:
        config = only_in(str(((raw or {}).get("data") or {}).get(CONFIG_KEY, "")), what, as_text=True)
        response = config.get("injection_config_map") if isinstance(config, dict) else None
        return ConfigMapKey.parse(str(response)) if response else ConfigMapKey(Namespace(home), CONFIG_MAP)
    except SettingsError as error:
        raise ConfigurationError(str(error)) from error
    except ValueError as error:
        raise ConfigurationError(f"{what}: injection_config_map {error}") from error


async def config_in(asking: ClusterClient, home: str) -> tuple[ConfigMapKey, InjectionConfig | None]:
    """Return the ConfigMap of a cluster's injection configuration, and its content, or None without one.

    Raises the errors of `place_of`.
    """
    place = await place_of(asking, home)
    raw = await asking.one(CONFIG_MAPS, place.namespace, place.name)
    try:
        return place, None if raw is None else config_of(raw, home, place.key)
    except ConfigurationError as error:
        raise ConfigurationError(f"ConfigMap {place.namespace}/{place.name}: {error}") from error


async def injection_of(asking: ClusterClient, home: str, version: tuple[int, int]) -> Injection:
    """Return the injector's present inputs; raise ConfigurationError, KubeError or DriverError."""
    _, config = await config_in(asking, home)
    drivers = DriverRegistry.discover().drivers
    return Injection(config or config_of(None, home), drivers, await mesh_config(asking, home), version)


async def mesh_config(asking: ClusterClient, home: str) -> MeshConfig:
    """Return the MeshConfig of a control plane, or the defaults without one; raise KubeError."""
    resource = newest(MESH_CONFIG, await served(asking.api, {MESH_CONFIG.group}))
    if resource is None:
        return MeshConfig()
    return config_of_all((await asking.api.list(resource, home))["items"], resource)


def config_of_all(items: Iterable[Raw], resource: Resource) -> MeshConfig:
    """Return the control plane's choice among several MeshConfigs, as listed by the API server."""
    objects = {}
    for raw in items:
        document = {**raw, "apiVersion": resource.api_version, "kind": resource.kind}
        for key, value in read_shown(document, InFile("")).objects:
            objects[key] = SourcedObject(key, value, InFile(""))
    return View.build(objects, MeshSettings()).config
