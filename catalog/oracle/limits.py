"""Which UpstreamTrafficSetting holds: written from docs/osm.md, as the rest of the oracle.

It is one of the namespace of the service that its host names; the oldest, else the first by name. Connections
are limited for who calls, rates for who answers: at a port that several services have, by the first of theirs
that limits a rate.
"""

from collections.abc import Iterable

from catalog.oracle.targets import Place
from catalog.relations.backends.targets import served_by
from catalog.store.inventory import by_identity
from catalog.store.osm import settings_by_host
from catalog.store.view import View
from meshwright.mesh.policies.limits import RateLimits, UpstreamTrafficSetting
from meshwright.mesh.service import ServiceKey


def for_callers(view: View, key: ServiceKey) -> UpstreamTrafficSetting | None:
    """Return the setting by which a service is called."""
    short = f"{key.name}.{key.namespace}"
    hosts = (short, f"{short}.svc", f"{short}.svc.{view.settings.cluster_domain}")
    found = [each for host in hosts for each in settings_by_host(view).found(host)]
    return _first(each for each in found if each.key.namespace == key.namespace)


def at_place(view: View, where: Place) -> UpstreamTrafficSetting | None:
    """Return the setting whose rates hold for calls to a workload's port."""
    called = {
        service.key
        for workload in by_identity(view).found(where.identity)
        for number, _, there in served_by(view, workload)
        for service in there
        if number == where.port
    }
    held = [setting for key in called if (setting := for_callers(view, key)) is not None]
    return _first(each for each in held if each.rates != RateLimits())


def _first(found: Iterable[UpstreamTrafficSetting]) -> UpstreamTrafficSetting | None:
    ordered = sorted(found, key=lambda each: (each.created or "~", each.key))
    return ordered[0] if ordered else None
