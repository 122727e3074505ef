"""What a group of proxies tells of its traffic, by the Telemetry objects that count for it."""

from dataclasses import replace

from catalog.policy.values.terms import AccessLogPolicy
from catalog.relations.groups import ProxyGroup
from catalog.relations.telemetry import told
from catalog.store import mesh_wide
from catalog.store.osm import extension_services
from catalog.store.view import View
from meshwright.mesh.config import Tracing


def logging(view: View, group: ProxyGroup) -> AccessLogPolicy:
    """Return what access logs are; an ExtensionService that is not there is told nothing."""
    found = next((each for each in told(view, group.telemetry) if each.access_log is not None), None)
    if found is None or found.access_log is None:
        return AccessLogPolicy()
    log = found.access_log
    collector = None if log.export is None else extension_services(view).get(log.export.service)
    if collector is None:
        log = replace(log, export=None)
    return AccessLogPolicy(found.key, log, collector)


def tracing(view: View, group: ProxyGroup) -> Tracing | None:
    """Return what is traced: as much as a Telemetry says, else as the mesh has it."""
    found = mesh_wide.tracing(view).value()
    if found is None:
        return None
    said = (each.sampling for each in told(view, group.telemetry) if each.sampling is not None)
    return replace(found, percent=next(said, view.settings.trace_sampling))
