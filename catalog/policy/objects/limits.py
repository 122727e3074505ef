"""UpstreamTrafficSettings: the one in force for a service, and its limits.

A setting counts for a service of its own namespace, by any DNS name valid in all namespaces. Of several the
oldest is in force (`metadata.creationTimestamp`; those without one last), then the first by name. Connections
are limited at the callers, rates at the workloads of the service.
"""

from catalog.store.osm import settings_by_host
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimits, UpstreamTrafficSetting
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey


def precedence(setting: UpstreamTrafficSetting) -> tuple[bool, str, PolicyKey]:
    """Return the sort key of an UpstreamTrafficSetting for one host."""
    return (not setting.created, setting.created, setting.key)


def setting_of(view: View, key: ServiceKey) -> UpstreamTrafficSetting | None:
    """Return the UpstreamTrafficSetting that applies to a service, or `None`."""
    return min(rivals(view, key), key=precedence, default=None)


def rivals(view: View, key: ServiceKey) -> tuple[UpstreamTrafficSetting, ...]:
    """Return all settings for a service, each of which would be in force without the others."""
    names = key.host_names(view.settings.cluster_domain)
    result = (setting for name in names for setting in settings_by_host(view).lookup(name))
    return tuple(setting for setting in result if setting.key.namespace == key.namespace)


@derived
def connection_limits(view: View, key: ServiceKey) -> ConnectionLimits:
    """Return the limits on connections from each caller's proxy to a service."""
    setting = setting_of(view, key)
    return ConnectionLimits() if setting is None else setting.connections


@derived
def rate_limits(view: View, services: tuple[ServiceKey, ...]) -> RateLimits:
    """Return the rate limits of a workload at a port of these services."""
    setting = counting(view, services)
    return RateLimits() if setting is None else setting.rates


def counting(view: View, services: tuple[ServiceKey, ...]) -> UpstreamTrafficSetting | None:
    """Return the setting with the rates in force at a port of these services.

    A workload cannot distinguish by which service it was called, so the first setting with rates counts for
    all.
    """
    result = (setting_of(view, service) for service in services)
    limiting = (setting for setting in result if setting is not None and setting.rates != RateLimits())
    return min(limiting, key=precedence, default=None)
