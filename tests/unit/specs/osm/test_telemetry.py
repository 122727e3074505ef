"""Tests of Telemetry and ExtensionService: values that are read, and log formats that a sidecar refuses."""

from datetime import timedelta

import pytest

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.telemetry import (
    AccessLog,
    ExtensionService,
    JsonFormat,
    LogExport,
    LogFilter,
    LogFormat,
    Telemetry,
    TextFormat,
)
from meshwright.specs.osm.log_formats import OPERATORS, fault
from tests.meshes.reading import complaints, reading, value

KEY = PolicyKey(Namespace("shop"), "a")


def telemetry(spec: str) -> str:
    """Return a Telemetry."""
    return (
        "apiVersion: policy.openservicemesh.io/v1alpha1\nkind: Telemetry\n"
        f"metadata: {{name: a, namespace: shop}}\nspec: {spec}"
    )


def service(spec: str) -> str:
    """Return an ExtensionService."""
    return (
        "apiVersion: config.openservicemesh.io/v1alpha2\nkind: ExtensionService\n"
        f"metadata: {{name: a, namespace: shop}}\nspec: {spec}"
    )


def written(text: str) -> LogFormat | None:
    """Return the log format that a valid manifest is read as."""
    result = value(telemetry(f"{{accessLog: {{format: '{text}'}}}}"))
    assert isinstance(result, Telemetry)
    assert result.access_log is not None
    return result.access_log.format


def test_telemetry_with_all_fields_is_read() -> None:
    """The manifest has OSM's fields and our additional ones."""
    spec = """
  selector: {tier: web, app: shop}
  accessLog:
    format: '%DURATION%'
    stdout: false
    file: /var/log/envoy/access.log
    openTelemetry:
      extensionService: {namespace: monitoring, name: collector}
      attributes: {b: x, a: '%REQ(:path)%'}
    filter: {minStatus: 500, minDuration: 1s}
    sampling: 12.5
  tracing: {sampling: 1}"""
    assert value(telemetry(spec)) == Telemetry(
        KEY,
        (("app", "shop"), ("tier", "web")),
        AccessLog(
            TextFormat("%DURATION%"),
            stdout=False,
            file="/var/log/envoy/access.log",
            export=LogExport(
                PolicyKey(Namespace("monitoring"), "collector"), (("a", "%REQ(:path)%"), ("b", "x"))
            ),
            filter=LogFilter(500, timedelta(seconds=1), 12.5),
        ),
        1.0,
    )


def test_empty_telemetry_changes_nothing() -> None:
    """An empty accessLog gives the sidecar an access log with the defaults."""
    assert value(telemetry("{}")) == Telemetry(KEY)
    assert value(telemetry("{accessLog: {}}")) == Telemetry(KEY, access_log=AccessLog())


def test_extension_service_is_read_in_canonical_form() -> None:
    """The protocol may have any case; only gRPC is supported."""
    result = value(service("{host: Collector.Example.org, port: 4317, protocol: H2C, connectTimeout: 500ms}"))
    wait = timedelta(milliseconds=500)
    assert result == ExtensionService(KEY, HostPort("collector.example.org", 4317), wait)


def test_log_format_is_read_as_json_or_text() -> None:
    """A JSON object has sorted keys, all else is text; OSM's own operator is replaced by Envoy's."""
    assert written('{"b": "%DURATION%", "a": [1, {"c": "x"}]}') == JsonFormat(
        '{"a": [1, {"c": "x"}], "b": "%DURATION%"}'
    )
    assert written('["%DURATION%"]') == TextFormat('["%DURATION%"]')
    assert written("%REQ_WITHOUT_QUERY(X-ENVOY-ORIGINAL-PATH?:PATH)%") == TextFormat(
        "%PATH(NQ:ORIG_OR_PATH)%"
    )


SIDECARS = (
    "%REQ(:path)%%RESP(x)%",
    "%REQ(X-A?B):10%",
    "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%",
    "%START_TIME(%s)%",
    "%START_TIME()%",
    "%DYNAMIC_METADATA(envoy.filters.http.rbac:shadow_effective_policy_id)%",
    "%METADATA(ROUTE:a:b)%",
    "%FILTER_STATE(a.b:PLAIN)%",
    "%RESPONSE_CODE_DETAILS(ALLOW_WHITESPACES)%",
    "%QUERY_PARAM(a)%",
    "%GRPC_STATUS(SNAKE_STRING)%",
    "%COMMON_DURATION(DS_RX_BEG:US_TX_END:ms)%",
    *(f"%{operator}%" for operator in sorted(OPERATORS)),
)
"""Operators, each by itself."""


@pytest.mark.parametrize("text", ["", "no operator", "100%%", *SIDECARS])
def test_operators_known_to_all_sidecars_are_accepted(text: str) -> None:
    """tests/e2e/policy/telemetry/test_telemetry.py checks the same with a real Envoy."""
    assert fault(text) is None


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("100%", "%"),
        ("50% of", "%"),
        ("%duration%", "%duration%"),
        ("%DURATON%", "%DURATON%"),
        ("a %REQ% b", "%REQ%"),
        ("%REQ()%", "%REQ()%"),
        ("%REQ(a b)%", "%REQ(a b)%"),
        ("%REQ(a):x%", "%REQ(a):x%"),
        ("%DURATION(a)%", "%DURATION(a)%"),
        ("%DURATION%%", "%"),
        ("%ENVIRONMENT(TOKEN)%", "%ENVIRONMENT(TOKEN)%"),
        ("%START_TIME(%1f%s%n)%", "%START_TIME(%1f%s%n)%"),
        ("%DOWNSTREAM_PEER_CERT%", "%DOWNSTREAM_PEER_CERT%"),
    ],
)
def test_operators_that_some_sidecars_refuse_are_named(text: str, bad: str) -> None:
    """Operators that reveal secrets of the proxy are refused too, such as ENVIRONMENT."""
    assert fault(text) == bad


LOG = "{{accessLog: {{{0}}}}}"
FORMAT = "spec.accessLog.format"


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        (telemetry(LOG.format("format: '%NOPE%'")), "MW1013", FORMAT),
        (telemetry(LOG.format('format: \'{"a": {"b": "%NOPE%"}}\'')), "MW1013", FORMAT),
        (telemetry(LOG.format("format: ''")), "MW1013", FORMAT),
        (telemetry(LOG.format(f"format: {'a' * 8193}")), "MW1013", FORMAT),
        (telemetry(LOG.format("format: {a: b}")), "MW1010", FORMAT),
        (telemetry(LOG.format("file: access.log")), "MW1013", "spec.accessLog.file"),
        (telemetry(LOG.format("stdout: 'no'")), "MW1010", "spec.accessLog.stdout"),
        (telemetry(LOG.format("sampling: 101")), "MW1013", "spec.accessLog.sampling"),
        (telemetry(LOG.format("filter: {minStatus: 99}")), "MW1013", "spec.accessLog.filter.minStatus"),
        (
            telemetry(LOG.format("openTelemetry: {}")),
            "MW1011",
            "spec.accessLog.openTelemetry.extensionService",
        ),
        (
            telemetry(LOG.format("openTelemetry: {extensionService: {name: a}, attributes: {a: '%NOPE%'}}")),
            "MW1013",
            "spec.accessLog.openTelemetry.attributes.a",
        ),
        (telemetry("{selector: {app: 1}}"), "MW1010", "spec.selector[app]"),
        (telemetry("{tracing: {}}"), "MW1011", "spec.tracing.sampling"),
        (telemetry("{accesslog: {}}"), "MW1012", "spec.accesslog"),
        (service("{port: 1}"), "MW1011", "spec.host"),
        (service("{host: a}"), "MW1011", "spec.port"),
        (service("{host: a, port: 1, protocol: http}"), "MW1013", "spec.protocol"),
    ],
)
def test_invalid_telemetry_or_extension_service_is_refused_with_its_field(
    text: str, code: str, field: str
) -> None:
    """No part of the object is in force."""
    assert ("error", code, field) in [complaint[:3] for complaint in complaints(text)]
    assert reading(text).objects == ()
