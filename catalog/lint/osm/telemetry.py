"""Problems of Telemetry objects and ExtensionServices: missing collectors, selectors and precedence."""

import re
from collections.abc import Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.lint import Lint
from catalog.lint.servers import behind_sidecars
from catalog.lint.smi.reach import workloads_in
from catalog.lint.wording import Place, meant
from catalog.relations.telemetry import of_namespace, selects
from catalog.store.osm import extension_services
from catalog.store.view import View
from meshwright.mesh.kinds import EXTENSION_SERVICE, TELEMETRY
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.telemetry import AccessLog, ExtensionService, Telemetry
from meshwright.mesh.problems.problem import Problem

_SECRET: Final = re.compile(
    r"%(?:REQ|RESP)\([^)]*\b(authorization|proxy-authorization|cookie|set-cookie|x-api-key)\b", re.IGNORECASE
)


def problems(lint: Lint, telemetry: Telemetry) -> Iterator[Problem]:
    """Yield the problems of a Telemetry."""
    view = lint.view
    place = Place(view, ObjectKey.from_name(TELEMETRY, telemetry.key))
    if telemetry.access_log is not None:
        yield from _collector(place, telemetry.access_log)
        yield from _secrets(place, telemetry.access_log)
    here = workloads_in(lint).lookup(telemetry.key.namespace)
    if telemetry.selector and not any(selects(telemetry, workload) for workload in here):
        labels = ", ".join(f"{name}={value}" for name, value in telemetry.selector)
        wanted = (
            f"Workloads with these labels do not exist in namespace {telemetry.key.namespace}, so the "
            "Telemetry is not in force. Correct the selector."
        )
        yield place.warning(Code.SELECTS_NOBODY, "spec.selector", labels, wanted)
    yield from _shadowed(place, telemetry)


def of_service(view: View, extension_service: ExtensionService) -> Iterator[Problem]:
    """Yield the problems of an ExtensionService."""
    yield from behind_sidecars(
        view,
        ObjectKey.from_name(EXTENSION_SERVICE, extension_service.key),
        [("spec.host", extension_service.server)],
    )


def _collector(place: Place, log: AccessLog) -> Iterator[Problem]:
    if log.export is None or log.export.service in (known := extension_services(place.view)):
        return
    key = log.export.service
    there = [policy_key.name for policy_key in known if policy_key.namespace == key.namespace]
    wanted = (
        f"ExtensionService {key} does not exist or is invalid{meant([key.name], there)}, so "
        "access logs are not exported. Create or correct the ExtensionService."
    )
    field = "spec.accessLog.openTelemetry.extensionService"
    yield place.error(Code.UNKNOWN_COLLECTOR, field, str(key), wanted)


def _secrets(place: Place, log: AccessLog) -> Iterator[Problem]:
    formats = [("spec.accessLog.format", log.format.text if log.format else "")]
    if log.export is not None:
        field = "spec.accessLog.openTelemetry.attributes"
        formats += [(field, value) for _, value in log.export.attributes]
    for field, text in formats:
        if (match := _SECRET.search(text)) is not None:
            wanted = (
                "This header contains credentials of callers, and every reader of the log "
                "could use them. Remove the header from the log."
            )
            yield place.warning(Code.LOGS_CREDENTIALS, field, match.group(1).lower(), wanted)


def _shadowed(place: Place, telemetry: Telemetry) -> Iterator[Problem]:
    """Yield a problem if other objects with the same selector take precedence in all parts of this one."""
    alike = [
        other
        for other in of_namespace(place.view, telemetry.key.namespace)
        if other.key.namespace == telemetry.key.namespace and other.selector == telemetry.selector
    ]
    before = alike[: [other.key for other in alike].index(telemetry.key)]
    logs = telemetry.access_log is None or any(other.access_log is not None for other in before)
    sampling = telemetry.sampling is None or any(other.sampling is not None for other in before)
    if before and logs and sampling:
        wanted = (
            f"Telemetry {before[0].key} has the same selector and takes precedence, because it is older or "
            "first by name, so this one is not in force. Delete one of the two."
        )
        yield place.error(Code.SHADOWED_TELEMETRY, "spec", "", wanted)
