"""Sidecar injection, assembled: configuration, look-ups, and reports of problems.

A server without a cluster does not import this module.
"""

import socket
from collections.abc import Callable, Sequence
from datetime import datetime

from meshwright.admin.metrics.registry import Metrics
from meshwright.controller.drivers import MeshDrivers
from meshwright.controller.errors import SettingsError
from meshwright.controller.identity.proxy_certificates import ProxyIssuing
from meshwright.controller.kubernetes.cluster import Cluster
from meshwright.controller.kubernetes.injection_file import InjectionFile
from meshwright.controller.settings.config_file import only_in
from meshwright.controller.settings.settings import Settings
from meshwright.delivery.assembly import Delivery
from meshwright.kubernetes.injection.configuration.config_map import InjectionConfigMap, Owner
from meshwright.kubernetes.injection.configuration.configuration import ConfigurationError, Identity
from meshwright.kubernetes.injection.configuration.current import CurrentConfig
from meshwright.kubernetes.injection.configuration.place import ConfigMapKey
from meshwright.kubernetes.injection.credentials.secret_writer import PodSecrets
from meshwright.kubernetes.injection.webhook.lookup import Lookup
from meshwright.kubernetes.injection.webhook.server import Injection
from meshwright.kubernetes.status.event import EventReporter
from meshwright.kubernetes.status.events.one_object import OneObject
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import CONFIG_MAP
from meshwright.mesh.objects import ObjectKey

_REASON = "InjectionConfigurationRefused"


def injection_of(
    settings: Settings,
    cluster: Cluster,
    delivered: Delivery,
    drivers: MeshDrivers,
    proxies: ProxyIssuing,
    metrics: Metrics,
    clock: Callable[[], datetime],
    configured: CurrentConfig,
    followers: Sequence[Callable[[], None]],
    leads: Callable[[], bool] | None = None,
) -> Injection:
    """Return the injection webhook's handler; `followers` are called after a change of the configuration.

    `leads` returns whether this server leads, `None` for the only server of a mesh.
    """

    def mesh_config() -> MeshConfig:
        view = delivered.loop.state.view
        return MeshConfig() if view is None else view.config

    def by_secret() -> bool:
        return configured.config is not None and configured.config.identity is Identity.SECRET

    return Injection(
        configured,
        Lookup(cluster.api, lambda: delivered.gathering.sources.merged),
        drivers.drivers,
        drivers.environment,
        mesh_config,
        metrics.injection,
        PodSecrets(cluster.api, cluster.home, proxies, clock, by_secret, settings.namespaces, leads),
        followers,
    )


def configured_by(
    settings: Settings, cluster: Cluster, metrics: Metrics, clock: Callable[[], datetime]
) -> CurrentConfig:
    """Return the configuration of injection, from the file or ConfigMap in the settings."""
    place = settings.injection_config_map
    if place is None:
        return InjectionFile(settings.injection_config, cluster.home, metrics)
    owner = _owner(cluster, place, clock) if settings.kubernetes_reports else None
    return InjectionConfigMap(cluster.api, place, cluster.home, metrics, _document_of, clock, owner)


def _document_of(text: str, where: str) -> object:
    try:
        return only_in(text, where)
    except SettingsError as error:
        raise ConfigurationError(str(error)) from error


def _owner(cluster: Cluster, place: ConfigMapKey, clock: Callable[[], datetime]) -> Owner:
    about = ObjectKey(CONFIG_MAP, place.namespace, place.name)
    return OneObject(cluster.api, about, _REASON, EventReporter(socket.gethostname(), cluster.home), clock)
