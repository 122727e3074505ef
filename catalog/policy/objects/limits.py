"""UpstreamTrafficSettings: which is in force for a service, and what it limits where.

A setting counts for a service of its own namespace, by any of the names that all namespaces call it by. Of
several the oldest is in force (`metadata.creationTimestamp`; those without one last), then the first by name.
Connections are limited at the callers, rates at the workloads behind the service.
"""

from catalog.store.osm import settings_by_host
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimits, UpstreamTrafficSetting
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey


def precedence(setting: UpstreamTrafficSetting) -> tuple[bool, str, PolicyKey]:
    """Return the sort key of a setting among those of one host."""
    return (not setting.created, setting.created, setting.key)


def setting_of(view: View, key: ServiceKey) -> UpstreamTrafficSetting | None:
    """Return the setting in force for a service, None where there is none."""
    return min(rivals(view, key), key=precedence, default=None)


def rivals(view: View, key: ServiceKey) -> tuple[UpstreamTrafficSetting, ...]:
    """Return the settings that would count for a service, each by itself."""
    names = key.host_names(view.settings.cluster_domain)
    found = (each for name in names for each in settings_by_host(view).found(name))
    return tuple(each for each in found if each.key.namespace == key.namespace)


@derived
def connection_limits(view: View, key: ServiceKey) -> ConnectionLimits:
    """Return what each caller's proxy lets go to a service at once."""
    setting = setting_of(view, key)
    return ConnectionLimits() if setting is None else setting.connections


@derived
def rate_limits(view: View, services: tuple[ServiceKey, ...]) -> RateLimits:
    """Return what a workload takes at a port at which these services are called."""
    setting = counting(view, services)
    return RateLimits() if setting is None else setting.rates


def counting(view: View, services: tuple[ServiceKey, ...]) -> UpstreamTrafficSetting | None:
    """Return the setting whose rates hold at a port of these services.

    A workload cannot tell by which of them it was called: it is the first of those that limit a rate.
    """
    found = (setting_of(view, each) for each in services)
    limiting = (each for each in found if each is not None and each.rates != RateLimits())
    return min(limiting, key=precedence, default=None)
