"""Policies in force for calls to a service: UpstreamTrafficSetting, Retry and UpstreamPolicy.

Written from docs/policy/osm.md and docs/policy/traffic.md, like the rest of the oracle. Of several objects
for one service the oldest is in force, else the first by name. An UpstreamTrafficSetting must be in the
namespace of the service in the host. The setting limits connections at callers, and request rates at the
called workload; at a port of several services, the first setting with rates is in force.
"""

from collections.abc import Iterable

from catalog.oracle.targets import Place
from catalog.relations.backends.targets import served_by
from catalog.store.inventory import by_identity
from catalog.store.osm import retries, settings_by_host
from catalog.store.own_policies import upstream_policies
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.policies.limits import RateLimits, UpstreamTrafficSetting
from meshwright.mesh.policies.retries import Retry
from meshwright.mesh.policies.upstreams import UpstreamPolicy
from meshwright.mesh.service import ServiceKey


def setting_for_callers(view: View, key: ServiceKey) -> UpstreamTrafficSetting | None:
    """Return the UpstreamTrafficSetting that applies to callers of a service."""
    short = f"{key.name}.{key.namespace}"
    hosts = (short, f"{short}.svc", f"{short}.svc.{view.settings.cluster_domain}")
    settings = [setting for host in hosts for setting in settings_by_host(view).lookup(host)]
    return _first(setting for setting in settings if setting.key.namespace == key.namespace)


def setting_at_place(view: View, where: Place) -> UpstreamTrafficSetting | None:
    """Return the UpstreamTrafficSetting with the rate limits that apply at a workload's port."""
    called = {
        service.key
        for workload in by_identity(view).lookup(where.identity)
        for number, _, there in served_by(view, workload)
        for service in there
        if number == where.port
    }
    held = [setting for key in called if (setting := setting_for_callers(view, key)) is not None]
    return _first(setting for setting in held if setting.rates != RateLimits())


def tried_again(view: View, client: ServiceIdentity, key: ServiceKey) -> Retry | None:
    """Return the Retry that applies to a client's calls to a service."""
    mine = (retry for retry in retries(view).values() if retry.source == client and key in retry.destinations)
    return min(mine, key=lambda item: (item.created or "~", item.key), default=None)


def reaching(view: View, key: ServiceKey) -> UpstreamPolicy | None:
    """Return the UpstreamPolicy for the endpoints of a service; `None` for the mesh's defaults.

    A headless service is without a policy, because the called endpoint answers.
    """
    service = view.services.get(key)
    if service is None or service.headless:
        return None
    result = (
        upstream_policy
        for upstream_policy in upstream_policies(view).values()
        if upstream_policy.service == key
    )
    return min(result, key=lambda item: (item.created or "~", item.key), default=None)


def _first(settings: Iterable[UpstreamTrafficSetting]) -> UpstreamTrafficSetting | None:
    ordered = sorted(settings, key=lambda setting: (setting.created or "~", setting.key))
    return ordered[0] if ordered else None
