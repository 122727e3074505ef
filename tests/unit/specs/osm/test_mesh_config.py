"""Tests of OSM's MeshConfig."""

from datetime import timedelta

import pytest

from meshwright.mesh.config import (
    Exclusions,
    GatewayCertificate,
    MeshConfig,
    SidecarDriverSettings,
    SidecarSettings,
    TlsVersion,
    Tracing,
    TracingProtocol,
)
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import InterfaceName, Namespace, Port, SecretName
from meshwright.mesh.policies.authorization import Authorizer
from meshwright.mesh.problems.problem import Severity
from meshwright.specs.osm.mesh_config import NOT_USED
from meshwright.specs.values.durations import parse_duration
from tests.meshes.reading import complaints, reading, value


def _config(spec: str, version: str = "v1alpha2") -> str:
    return (
        f"apiVersion: config.openservicemesh.io/{version}\nkind: MeshConfig\n"
        f"metadata: {{name: osm-mesh-config, namespace: osm-system}}\nspec: {spec}"
    )


def test_empty_mesh_config_has_closed_defaults() -> None:
    """By default neither the permissive mode nor egress is allowed."""
    assert value(_config("{}")) == MeshConfig()
    assert (MeshConfig().permissive, MeshConfig().egress) == (False, False)


def test_mesh_config_with_all_honoured_fields_is_read() -> None:
    """The fields of OSM and of its successor are read, in both versions."""
    spec = """
  sidecar:
    sidecarClass: envoy
    sidecarDrivers:
    - sidecarName: envoy
      sidecarImage: e:1
      sidecarWindowsImage: w:1
      initContainerImage: i:1
      proxyServerPort: 15128
      sidecarDisabledMTLS: true
    logLevel: debug
    envoyImage: e:2
    envoyWindowsImage: w:2
    initContainerImage: i:2
    tlsMinProtocolVersion: TLSv1_3
    tlsMaxProtocolVersion: TLS_AUTO
    cipherSuites: [ECDHE-ECDSA-AES128-GCM-SHA256, "[AES128-SHA|AES256-SHA]", ECDHE-ECDSA-AES128-GCM-SHA256]
    ecdhCurves: [prime256v1, X25519, P-256]
  traffic:
    enableEgress: true
    enablePermissiveTrafficPolicyMode: true
    inboundPortExclusionList: [9100, 22, 9100]
    outboundPortExclusionList: [6379]
    outboundIPRangeInclusionList: [10.0.0.0/8]
    outboundIPRangeExclusionList: [10.2.0.0/16, 10.1.0.1]
    networkInterfaceExclusionList: [net+, eth0.100, br-lan_1, net+]
  certificate: {serviceCertValidityDuration: 1h30m}
"""
    driver = SidecarDriverSettings("envoy", "e:1", "w:1", "i:1", 15128, disabled_mtls=True)
    sidecar = SidecarSettings(
        "envoy",
        (driver,),
        "debug",
        "e:2",
        "w:2",
        "i:2",
        TlsVersion.V1_3,
        TlsVersion.V1_3,
        ("ECDHE-ECDSA-AES128-GCM-SHA256", "[AES128-SHA|AES256-SHA]"),
        ("P-256", "X25519"),
    )
    kept = Exclusions(
        (Port(22), Port(9100)),
        (Port(6379),),
        ("10.0.0.0/8",),
        ("10.1.0.1/32", "10.2.0.0/16"),
        tuple(map(InterfaceName, ("br-lan_1", "eth0.100", "net+"))),
    )
    expected = MeshConfig(True, True, timedelta(minutes=90), sidecar, kept)
    assert value(_config(spec)) == expected
    assert value(_config(spec, "v1alpha1")) == expected


@pytest.mark.parametrize(
    ("section", "name"), [(section, name) for section, names in NOT_USED.items() for name in names]
)
def test_each_field_without_effect_is_reported(section: str, name: str) -> None:
    """Any value is accepted and changes nothing; the problem is no error."""
    text = "{x: 1}"
    for item in reversed((*section.split(".")[1:], name)):
        text = f"{{{item}: {text}}}"
    manifest_reading = reading(_config(text))
    assert [made for _, made in manifest_reading.objects] == [MeshConfig()]
    (problem,) = manifest_reading.problems
    assert f"{section}.{name}" in (
        problem.field,
        problem.expected.removeprefix("these fields are known but ignored: "),
    )
    assert problem.severity is not Severity.ERROR


def test_known_fields_without_effect_are_reported_together() -> None:
    """They are accepted with any value."""
    spec = """
  sidecar: {localProxyMode: Localhost, resources: {limits: {cpu: 1}}}
  traffic: {interceptionMode: Iptables, outboundIPRangeInclusionList: []}
  observability: {osmLogLevel: info, tracing: {enable: false}}
  featureFlags: {enableWASMStats: true}
"""
    manifest_reading = reading(_config(spec))
    assert [problem.expected for problem in manifest_reading.problems] == [
        (
            "these fields are known but ignored: spec.featureFlags.enableWASMStats, "
            "spec.observability.osmLogLevel, spec.sidecar.localProxyMode, "
            "spec.sidecar.resources, spec.traffic.interceptionMode"
        )
    ]
    assert [pair[1] for pair in manifest_reading.objects] == [MeshConfig()]


def test_unknown_fields_are_one_warning_and_the_rest_is_in_force() -> None:
    """Kubernetes prunes these fields. A misspelt or misplaced one must not open the mesh."""
    text = """
apiVersion: config.openservicemesh.io/v1alpha1
kind: MeshConfig
metadata: {name: osm-mesh-config}
traffic: {enableEgress: true}
spec:
  sidecar: {logLevel: info, proxyMode: Localhost, sidecarDrivers: [{sidecarName: envoy, sidecarImg: e:1}]}
  traffic: {enablePermisiveTrafficPolicyMode: true}
  observability: {outboundPortExclusionList: [6379], tracing: {enable: false}}
  trafic: {}
  certificate: {serviceCertValidityDuration: 1h}
"""
    manifest_reading = reading(text)
    assert [
        (problem.severity.value, problem.code, problem.field, problem.expected)
        for problem in manifest_reading.problems
    ] == [
        (
            "warning",
            "MW1032",
            "",
            (
                "a MeshConfig does not have these fields, so they are ignored: traffic (it "
                "belongs into spec), spec.trafic (did you mean traffic?), spec.sidecar.proxyMode "
                "(did you mean localProxyMode?), spec.traffic.enablePermisiveTrafficPolicyMode "
                "(did you mean enablePermissiveTrafficPolicyMode?), "
                "spec.observability.outboundPortExclusionList (it belongs into spec.traffic), "
                "spec.sidecar.sidecarDrivers[0].sidecarImg (did you mean sidecarImage?)"
            ),
        ),
    ]
    sidecar = SidecarSettings(drivers=(SidecarDriverSettings("envoy"),), log_level="info")
    expected = MeshConfig(service_certificate_validity=timedelta(hours=1), sidecar=sidecar)
    assert [pair[1] for pair in manifest_reading.objects] == [expected]


def test_warning_of_very_many_unknown_fields_is_shortened() -> None:
    """It names the first fields and the number of the others."""
    (problem,) = reading(_config("{" + ", ".join(f"x{n:03}: 1" for n in range(500)) + "}")).problems
    assert problem.expected.endswith("spec.x019 and 480 more")


ASKED = Authorizer(HostPort("opa.opa.svc.cluster.local", 9191), "inboundExtAuthz", timedelta(seconds=1))
TOLD = Tracing(HostPort("jaeger.osm-system.svc.cluster.local", 9411), "/api/v2/spans")


def _asking(fields: str) -> str:
    return _config(f"{{traffic: {{inboundExternalAuthorization: {{{fields}}}}}}}")


def _telling(fields: str) -> str:
    return _config(f"{{observability: {{tracing: {{{fields}}}}}}}")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("enable: true, address: opa.opa.svc.cluster.local, port: 9191", ASKED),
        (
            "enable: true, address: OPA.opa.svc.cluster.local., port: 9191, statPrefix: '', timeout: 1s",
            ASKED,
        ),
        (
            "enable: true, address: 'fd00::7', port: 1, statPrefix: p, timeout: 9ms, failureModeAllow: true",
            Authorizer(HostPort("fd00::7", 1), "p", timedelta(milliseconds=9), fails_open=True),
        ),
        ("enable: false, address: '!', port: 70000", None),
        ("enable: null", None),
    ],
)
def test_external_authorization_is_read_with_the_defaults_of_osm(
    fields: str, expected: Authorizer | None
) -> None:
    """Fields of an authorization that is switched off are not checked."""
    assert value(_asking(fields)) == MeshConfig(authorization=expected)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("enable: true", TOLD),
        (
            "enable: true, address: 10.0.0.9, port: 80, endpoint: /spans",
            Tracing(HostPort("10.0.0.9", 80), "/spans"),
        ),
        ("enable: true, protocol: Zipkin", TOLD),
        (
            "enable: true, protocol: OTLP, address: otel",
            Tracing(HostPort("otel", 4317), protocol=TracingProtocol.OTLP),
        ),
        (
            "enable: true, protocol: OTLP, address: 'fd00::7', port: 55680, endpoint: ''",
            Tracing(HostPort("fd00::7", 55680), protocol=TracingProtocol.OTLP),
        ),
        ("enable: false, endpoint: spans", None),
        ("enable: false, protocol: Jaeger", None),
    ],
)
def test_tracing_is_read_with_the_defaults_of_osm(fields: str, expected: Tracing | None) -> None:
    """The default collector is Jaeger in the MeshConfig's namespace, and the default port of OTLP is 4317."""
    assert value(_telling(fields)) == MeshConfig(tracing=expected)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (_asking("enable: true, port: 1"), "enable"),
        (_asking("enable: true, address: '', port: 1"), "enable"),
        (_asking("enable: true, address: a b, port: 1"), "address"),
        (_asking("enable: true, address: 'opa:9191', port: 1"), "address"),
        (_asking("enable: true, address: 10.0.0.300, port: 1"), "address"),
        (_asking("enable: true, address: opa"), "enable"),
        (_asking("enable: true, address: opa, port: 0"), "port"),
        (_telling("enable: true, protocol: otlp"), "protocol"),
        (_telling("enable: true, protocol: 7"), "protocol"),
        (_telling("enable: true, protocol: OTLP, endpoint: /v1/traces"), "endpoint"),
        (_asking("enable: true, address: opa, port: 1, timeout: 0s"), "timeout"),
        (_asking("enable: true, address: opa, port: 1, timeout: 1"), "timeout"),
        (_asking('enable: true, address: opa, port: 1, statPrefix: "a\\nb"'), "statPrefix"),
        (_telling("enable: true, address: 'http://jaeger'"), "address"),
        (_telling("enable: true, endpoint: api"), "endpoint"),
        (_telling("enable: 'yes'"), "enable"),
    ],
)
def test_invalid_server_refuses_the_mesh_config_with_its_field(text: str, field: str) -> None:
    """The last good MeshConfig stays in force."""
    manifest_reading = reading(text)
    assert [problem.field.rpartition(".")[2] for problem in manifest_reading.problems] == [field]
    assert not manifest_reading.objects


def test_max_data_plane_connections_is_a_warning_with_the_alternative() -> None:
    """The value 0 is no limit, so it is only reported as a field without effect."""
    (problem,) = reading(_config("{sidecar: {maxDataPlaneConnections: 7}}")).problems
    assert (problem.severity.value, problem.code, problem.field, problem.expected) == (
        "warning",
        "MW1030",
        "spec.sidecar.maxDataPlaneConnections",
        (
            "is not enforced by Meshwright: to limit the number of connected proxies, use the "
            "setting max_streams of the server"
        ),
    )
    unbound = reading(_config("{sidecar: {maxDataPlaneConnections: 0}}"))
    assert [item.code for item in unbound.problems] == ["MW1021"]


@pytest.mark.parametrize(
    ("mode", "codes"), [("PodIP", ["MW1030"]), ("Localhost", ["MW1021"]), ("", ["MW1021"])]
)
def test_local_proxy_mode_pod_ip_is_a_warning(mode: str, codes: list[str]) -> None:
    """Applications must listen on 127.0.0.1 or on all addresses, which is OSM's default too."""
    manifest_reading = reading(_config(f"{{sidecar: {{localProxyMode: '{mode}'}}}}"))
    assert [problem.code for problem in manifest_reading.problems] == codes
    text = "listen on 127.0.0.1 or on all addresses, not only on the address of its Pod"
    assert [problem.expected.endswith(text) for problem in manifest_reading.problems] == [mode == "PodIP"]


def test_presets_of_the_osm_chart_are_read_without_warnings() -> None:
    """OSM makes its MeshConfig from this JSON, which here has every field of all its versions."""
    presets = """
{"sidecar": {"enablePrivilegedInitContainer": false, "logLevel": "error", "envoyImage": "",
  "maxDataPlaneConnections": 0, "configResyncInterval": "0s", "resources": {},
  "tlsMinProtocolVersion": "TLSv1_2", "tlsMaxProtocolVersion": "TLSv1_3",
  "cipherSuites": [], "ecdhCurves": [], "localProxyMode": "Localhost"},
 "traffic": {"enableEgress": true, "enablePermissiveTrafficPolicyMode": true, "outboundPortExclusionList": [],
  "inboundPortExclusionList": [], "outboundIPRangeExclusionList": [], "outboundIPRangeInclusionList": [],
  "networkInterfaceExclusionList": [], "useHTTPSIngress": false},
 "observability": {"enableDebugServer": false, "osmLogLevel": "info", "prometheusScraping": true,
  "tracing": {"enable": false}},
 "certificate": {"serviceCertValidityDuration": "24h", "certKeyBitSize": 2048,
  "ingressGateway": {"subjectAltNames": ["a"], "validityDuration": "24h",
   "secret": {"name": "a", "namespace": "b"}}},
 "featureFlags": {"enableWASMStats": true, "enableEgressPolicy": true, "enableMulticlusterMode": false,
  "enableSnapshotCacheMode": false, "enableAsyncProxyServiceMapping": false,
  "enableIngressBackendPolicy": true, "enableEnvoyActiveHealthChecks": false,
  "enableRetryPolicy": false, "enableMeshRootCertificate": false,
  "enableSPIFFE": false}}
"""
    for version in ("v1alpha1", "v1alpha2", "v1alpha3"):
        manifest_reading = reading(_config(presets.replace("\n", " "), version))
        assert [(problem.severity.value, problem.code) for problem in manifest_reading.problems] == [
            ("info", "MW1021")
        ]
        gateway = GatewayCertificate(SecretName(Namespace("b"), "a"), ("a",))
        wanted = MeshConfig(permissive=True, egress=True, ingress_gateway=gateway)
        assert [pair[1] for pair in manifest_reading.objects] == [wanted]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{traffic: {enableEgress: 'no'}}", ("error", "MW1010", "spec.traffic.enableEgress", '"no"')),
        (
            "{certificate: {serviceCertValidityDuration: 1 day}}",
            ("error", "MW1013", "spec.certificate.serviceCertValidityDuration", '"1 day"'),
        ),
        (
            "{traffic: {outboundPortExclusionList: [0]}}",
            ("error", "MW1013", "spec.traffic.outboundPortExclusionList[0]", "0"),
        ),
        (
            "{traffic: {outboundIPRangeExclusionList: [10.0.0.1/8]}}",
            ("error", "MW1013", "spec.traffic.outboundIPRangeExclusionList[0]", '"10.0.0.1/8"'),
        ),
        (
            "{traffic: {outboundIPRangeInclusionList: ['fd00::1/8']}}",
            ("error", "MW1013", "spec.traffic.outboundIPRangeInclusionList[0]", '"fd00::1/8"'),
        ),
        *(
            (
                f"{{traffic: {{networkInterfaceExclusionList: [eth1, {written}]}}}}",
                ("error", "MW1013", "spec.traffic.networkInterfaceExclusionList[1]", shown),
            )
            for written, shown in (
                ("lo", '"lo"'),
                ("+", '"+"'),
                ("'eth1 -j ACCEPT'", '"eth1 -j ACCEPT"'),
                ("sixteen-letters1", '"sixteen-letters1"'),
                ("7", "7"),
            )
        ),
        (
            "{sidecar: {cipherSuites: [AES128-SHA, TLS_AES_128_GCM_SHA256]}}",
            ("error", "MW1013", "spec.sidecar.cipherSuites[1]", '"TLS_AES_128_GCM_SHA256"'),
        ),
        (
            "{sidecar: {cipherSuites: ['[AES128-SHA|ALL]']}}",
            ("error", "MW1013", "spec.sidecar.cipherSuites[0]", '"[AES128-SHA|ALL]"'),
        ),
        ("{sidecar: {ecdhCurves: [P-224]}}", ("error", "MW1013", "spec.sidecar.ecdhCurves[0]", '"P-224"')),
        ("{sidecar: {ecdhCurves: ['']}}", ("error", "MW1010", "spec.sidecar.ecdhCurves[0]", '""')),
        ("{sidecar: {logLevel: loud}}", ("error", "MW1013", "spec.sidecar.logLevel", '"loud"')),
        (
            "{sidecar: {tlsMinProtocolVersion: TLSv1_1}}",
            ("error", "MW1013", "spec.sidecar.tlsMinProtocolVersion", '"TLSv1_1"'),
        ),
        (
            "{sidecar: {tlsMinProtocolVersion: TLSv1_3, tlsMaxProtocolVersion: TLSv1_2}}",
            ("error", "MW1013", "spec.sidecar.tlsMinProtocolVersion", '"TLSv1_3"'),
        ),
    ],
)
def test_invalid_mesh_config_is_refused_with_its_field(
    spec: str, expected: tuple[str, str, str, str]
) -> None:
    """Each invalid field is one problem with its value."""
    assert complaints(_config(spec)) == [expected]
    assert reading(_config(spec)).objects == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24h", timedelta(hours=24)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5s", timedelta(seconds=1.5)),
        ("500ms", timedelta(milliseconds=500)),
        ("2us", timedelta(microseconds=2)),
        ("", None),
        ("24", None),
        ("h", None),
        ("1d", None),
        ("-1h", None),
        ("999999999h", None),
    ],
)
def test_durations_are_read_like_in_go(text: str, expected: timedelta | None) -> None:
    """A duration is limited to 100 years."""
    assert parse_duration(text) == expected
