"""Access logs and traces of a group of proxies, by the Telemetry objects that apply."""

from dataclasses import replace

from catalog.policy.values.terms import AccessLogPolicy
from catalog.relations.groups import ProxyGroup
from catalog.relations.telemetry import telemetry_objects
from catalog.store import mesh_wide
from catalog.store.osm import extension_services
from catalog.store.view import View
from meshwright.mesh.config import Tracing


def logging(view: View, group: ProxyGroup) -> AccessLogPolicy:
    """Return the access log of a group; an export to a missing ExtensionService is left out."""
    telemetry = next(
        (item for item in telemetry_objects(view, group.telemetry) if item.access_log is not None), None
    )
    if telemetry is None or telemetry.access_log is None:
        return AccessLogPolicy()
    log = telemetry.access_log
    collector = None if log.export is None else extension_services(view).get(log.export.service)
    # A missing ExtensionService must not stop the access log itself.
    if collector is None:
        log = replace(log, export=None)
    return AccessLogPolicy(telemetry.key, log, collector)


def tracing(view: View, group: ProxyGroup) -> Tracing | None:
    """Return the tracing of a group with its sampling: that of a Telemetry, else of the mesh."""
    result = mesh_wide.tracing(view).value()
    if result is None:
        return None
    answer = (
        telemetry.sampling
        for telemetry in telemetry_objects(view, group.telemetry)
        if telemetry.sampling is not None
    )
    return replace(result, percent=next(answer, view.settings.trace_sampling))
