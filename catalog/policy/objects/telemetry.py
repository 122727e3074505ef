"""Access logs and traces of a group of proxies, by the Telemetry objects in force."""

from dataclasses import replace

from catalog.policy.values.terms import AccessLogPolicy
from catalog.relations.groups import ProxyGroup
from catalog.relations.telemetry import told
from catalog.store import mesh_wide
from catalog.store.osm import extension_services
from catalog.store.view import View
from meshwright.mesh.config import Tracing


def logging(view: View, group: ProxyGroup) -> AccessLogPolicy:
    """Return the access log; an export to a missing ExtensionService is left out."""
    found = next((each for each in told(view, group.telemetry) if each.access_log is not None), None)
    if found is None or found.access_log is None:
        return AccessLogPolicy()
    log = found.access_log
    collector = None if log.export is None else extension_services(view).get(log.export.service)
    # A missing ExtensionService must not stop the access log itself.
    if collector is None:
        log = replace(log, export=None)
    return AccessLogPolicy(found.key, log, collector)


def tracing(view: View, group: ProxyGroup) -> Tracing | None:
    """Return the tracing with its sampling: that of a Telemetry, else of the mesh."""
    found = mesh_wide.tracing(view).value()
    if found is None:
        return None
    said = (each.sampling for each in told(view, group.telemetry) if each.sampling is not None)
    return replace(found, percent=next(said, view.settings.trace_sampling))
