"""OSM's Telemetry and ExtensionService: access logs and traces of sidecars, and their receivers.

In Telemetry, `accessLog.format` and `openTelemetry` are OSM's fields. Our own are `stdout`, `file`, `filter`
and `sampling` beside them, and `tracing`.
"""

import re
from typing import Final

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.telemetry import AccessLog, ExtensionService, LogExport, LogFilter, Telemetry
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import Manifest
from meshwright.specs.osm.log_formats import FORMAT_RULE, fault, log_format
from meshwright.specs.values.durations import wait
from meshwright.specs.values.references import host, namespace_name, object_name

FILE: Final = r"/[A-Za-z0-9._/-]+"
FILE_RULE: Final = (
    "must be the absolute path of a file on the machine of the sidecar, for example /var/log/envoy/access.log"
)
PROTOCOLS: Final = ("grpc", "h2c", "http2")
_FILE: Final = re.compile(FILE)
_LONGEST_PATH: Final = 256


def telemetry(manifest: Manifest) -> Telemetry:
    """Read a Telemetry; without a selector it applies to all workloads of its namespace."""
    spec = manifest.spec()
    log, tracing = spec.section("accessLog"), spec.section("tracing")
    result = Telemetry(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        selector=spec.pairs("selector"),
        access_log=_access_log(manifest, log) if spec.has("accessLog") else None,
        sampling=tracing.percent("sampling") if spec.has("tracing") else None,
        created=manifest.metadata.text("creationTimestamp") or "",
    )
    for fields in (tracing, spec):
        fields.close()
    return result


def extension_service(manifest: Manifest) -> ExtensionService:
    """Read an ExtensionService: a gRPC service for sidecars, for example for access logs or authorization."""
    spec = manifest.spec()
    spec.required_text("host")
    server = HostPort(host(spec, "host"), spec.required_port("port"))
    text = (spec.text("protocol") or PROTOCOLS[0]).lower()
    if text not in PROTOCOLS:
        spec.wrong(
            "protocol",
            f"must be one of {', '.join(PROTOCOLS)}, because sidecars call the "
            "service over gRPC in plain text",
        )
    result = ExtensionService(
        PolicyKey(manifest.namespace, manifest.key.name), server, wait(spec, "connectTimeout")
    )
    spec.close()
    return result


def _access_log(manifest: Manifest, fields: Fields) -> AccessLog:
    export = fields.section("openTelemetry")
    access_log = AccessLog(
        format=log_format(fields, "format"),
        stdout=fields.flag("stdout", default=True),
        file=_file(fields),
        export=_export(manifest, export) if fields.has("openTelemetry") else None,
        filter=_filter(fields.section("filter"), fields),
    )
    fields.close()
    return access_log


def _file(fields: Fields) -> str:
    result = fields.text("file", expected=FILE_RULE) or ""
    if result and (not _FILE.fullmatch(result) or len(result) > _LONGEST_PATH):
        fields.wrong("file", FILE_RULE)
    return result


def _export(manifest: Manifest, fields: Fields) -> LogExport:
    service = fields.section("extensionService", required=True)
    key = PolicyKey(namespace_name(service, "namespace", manifest.namespace), object_name(service, "name"))
    service.close()
    attributes = fields.pairs("attributes")
    for name, value in attributes:
        if not name or fault(value) is not None:
            fields.notes.refuse(Code.WRONG_VALUE, f"{fields.at('attributes')}.{name:.60}", FORMAT_RULE, value)
    fields.close()
    return LogExport(key, attributes)


def _filter(fields: Fields, log: Fields) -> LogFilter:
    log_filter = LogFilter(
        min_status=fields.whole("minStatus", 100, 599),
        min_duration=wait(fields, "minDuration"),
        percent=log.percent("sampling", 100.0),
    )
    fields.close()
    return log_filter
