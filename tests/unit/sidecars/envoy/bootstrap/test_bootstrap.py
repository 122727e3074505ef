"""Tests of the bootstrap as a value; other tests start a real Envoy with it."""

import importlib
import json
import warnings
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import AdsProtocol, BootstrapSettings, bootstrap, sds_files
from meshwright.sidecars.envoy.bootstrap.json_messages import duration

_MONITOR = "extensions.resource_monitors.downstream_connections"


def settings(
    protocol: AdsProtocol = AdsProtocol.DELTA, host: str = "127.0.0.1", sds_directory: Path | None = None
) -> BootstrapSettings:
    """Make the settings of one proxy."""
    return BootstrapSettings(
        proxy_name=ProxyName.parse("u1.shop.default"),
        trust_domain=TrustDomain("mesh.example"),
        ads=(HostPort(host, 15128),),
        certificate_file=Path("/run/proxy.pem"),
        key_file=Path("/run/proxy.key"),
        ca_file=Path("/run/ca.pem"),
        protocol=protocol,
        sds_directory=sds_directory,
    )


def made(
    protocol: AdsProtocol = AdsProtocol.DELTA, host: str = "127.0.0.1", sds_directory: Path | None = None
) -> dict[str, Any]:
    """Make a bootstrap and parse it."""
    result: dict[str, Any] = json.loads(bootstrap(settings(protocol, host, sds_directory)))
    return result


def test_node_has_the_proxys_name_and_no_admin_interface_by_default() -> None:
    """The node id is the common name of the proxy, and the cluster is its service."""
    result = made()
    assert result["node"] == {"id": "u1.shop.default", "cluster": "shop.default"}
    assert "admin" not in result


@pytest.mark.parametrize(
    ("at", "address"),
    [
        (HostPort("127.0.0.1", 15000), {"socketAddress": {"address": "127.0.0.1", "portValue": 15000}}),
        (Path("/run/meshwright/admin.sock"), {"pipe": {"path": "/run/meshwright/admin.sock", "mode": 0o600}}),
    ],
)
def test_admin_interface_listens_on_a_port_or_a_private_socket(
    at: HostPort | Path, address: dict[str, Any]
) -> None:
    """Only Envoy's own user can open the socket, while every user of the machine can open a port."""
    result = json.loads(bootstrap(replace(settings(), admin=at)))
    assert result["admin"] == {"address": address}


@pytest.mark.parametrize(
    ("addresses", "resolved"),
    [
        (("10.0.0.1:15128", "[fd00::5]:15129"), "STATIC"),
        (("a.example:15128", "b.example:15128"), "STRICT_DNS"),
        (("10.0.0.1:15128", "b.example:15129"), "STRICT_DNS"),
    ],
)
def test_servers_are_endpoints_of_one_cluster(addresses: tuple[str, ...], resolved: str) -> None:
    """Envoy looks up names, so one name among addresses decides; the order of the endpoints is as given."""
    servers = tuple(HostPort.parse(address) for address in addresses)
    several = json.loads(bootstrap(replace(settings(), ads=servers)))
    (cluster,) = several["staticResources"]["clusters"]
    (locality,) = cluster["loadAssignment"]["endpoints"]
    assert cluster["type"] == resolved
    assert locality == {
        "lbEndpoints": [
            {"endpoint": {"address": {"socketAddress": {"address": at.host, "portValue": at.port}}}}
            for at in servers
        ]
    }
    one = json.loads(bootstrap(replace(settings(), ads=servers[:1])))
    one["staticResources"]["clusters"][0] |= {"loadAssignment": cluster["loadAssignment"], "type": resolved}
    assert several == one


@pytest.mark.parametrize(("protocol", "api"), [(AdsProtocol.DELTA, "DELTA_GRPC"), (AdsProtocol.SOTW, "GRPC")])
def test_ads_protocol_is_delta_or_state_of_the_world(protocol: AdsProtocol, api: str) -> None:
    """The aggregated protocol has both variants."""
    ads = made(protocol)["dynamicResources"]["adsConfig"]
    assert (ads["apiType"], ads["setNodeOnFirstMessageOnly"]) == (api, True)


@pytest.mark.parametrize("protocol", AdsProtocol)
def test_lost_stream_is_retried_within_seconds(protocol: AdsProtocol) -> None:
    """Envoy's default backoff grows to 30 s, so a proxy would stay away from a restarted control plane."""
    (service,) = made(protocol)["dynamicResources"]["adsConfig"]["grpcServices"]
    again = service["envoyGrpc"]["retryPolicy"]["retryBackOff"]
    assert again == {"baseInterval": "0.500s", "maxInterval": "5s"}


@pytest.mark.parametrize(("host", "kind"), [("127.0.0.1", "STATIC"), ("ads.example", "STRICT_DNS")])
def test_control_plane_is_verified_by_name_with_tls_1_3(host: str, kind: str) -> None:
    """Only TLS 1.3 and exactly the control plane's name are accepted, whatever the host is."""
    (cluster,) = made(host=host)["staticResources"]["clusters"]
    assert cluster.get("type", "STATIC") == kind
    tls = cluster["transportSocket"]["typedConfig"]
    common = tls["commonTlsContext"]
    assert tls["sni"] == "ads.mesh.example"
    assert common["tlsParams"] == {
        "tlsMinimumProtocolVersion": "TLSv1_3",
        "tlsMaximumProtocolVersion": "TLSv1_3",
    }
    assert common["validationContext"]["matchTypedSubjectAltNames"] == [
        {"sanType": "DNS", "matcher": {"exact": "ads.mesh.example"}}
    ]


def test_sds_directory_replaces_inline_certificates() -> None:
    """Envoy watches the directory and reads the certificate and the roots again when they change."""
    (cluster,) = made(sds_directory=Path("/run/sds"))["staticResources"]["clusters"]
    common = cluster["transportSocket"]["typedConfig"]["commonTlsContext"]

    def from_file(name: str, file: str) -> dict[str, Any]:
        source = {"path": f"/run/sds/{file}", "watchedDirectory": {"path": "/run/sds"}}
        return {"name": name, "sdsConfig": {"pathConfigSource": source, "resourceApiVersion": "V3"}}

    assert sorted(common) == [
        *("tlsCertificateSdsSecretConfigs", "tlsParams", "validationContextSdsSecretConfig")
    ]
    assert common["tlsCertificateSdsSecretConfigs"] == [from_file("proxy", "sds-proxy.json")]
    assert common["validationContextSdsSecretConfig"] == from_file("ca", "sds-ca.json")


def test_sds_files_refer_to_the_certificate_files_and_verify_the_name() -> None:
    """The files hold no secrets themselves.

    They require the same name of the control plane as the bootstrap.
    """
    watched = {"watchedDirectory": {"path": "/run/certificates"}}
    kind = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
    name = {"sanType": "DNS", "matcher": {"exact": "ads.mesh.example"}}
    result = sds_files(settings(sds_directory=Path("/run/sds")), Path("/run/certificates"))
    assert {file: json.loads(text)["resources"] for file, text in result.items()} == {
        "sds-proxy.json": [
            {
                "@type": kind,
                "name": "proxy",
                "tlsCertificate": {
                    "certificateChain": {"filename": "/run/proxy.pem"},
                    "privateKey": {"filename": "/run/proxy.key"},
                    **watched,
                },
            }
        ],
        "sds-ca.json": [
            {
                "@type": kind,
                "name": "ca",
                "validationContext": {
                    "trustedCa": {"filename": "/run/ca.pem"},
                    "matchTypedSubjectAltNames": [name],
                    **watched,
                },
            }
        ],
    }


@pytest.mark.parametrize("sds_directory", [None, Path("/run/sds")])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "ads.example"])
@pytest.mark.parametrize("protocol", AdsProtocol)
def test_independent_codec_reads_every_field_of_the_bootstrap(
    protocol: AdsProtocol, host: str, sds_directory: Path | None
) -> None:
    """The codec writes what it reads. Equal text proves that every field exists with this type and name."""
    chosen = settings(protocol, host, sds_directory)
    assert _written_by_the_codec("config.bootstrap.v3", "Bootstrap", bootstrap(chosen)) == bootstrap(chosen)


def test_independent_codec_reads_every_field_of_the_sds_files() -> None:
    """The files hold DiscoveryResponses, and the codec writes what it reads."""
    for text in sds_files(settings(sds_directory=Path("/run/sds")), Path("/run/certificates")).values():
        again = _written_by_the_codec("service.discovery.v3", "DiscoveryResponse", text)
        assert again == text


def _written_by_the_codec(package: str, name: str, text: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for item in ("extensions.transport_sockets.tls", "extensions.upstreams.http", _MONITOR):
            importlib.import_module(f"envoy_data_plane.envoy.{item}.v3")  # the types inside an Any
        message = getattr(importlib.import_module(f"envoy_data_plane.envoy.{package}"), name)
        read = message.from_dict(json.loads(text), ignore_unknown_fields=False).to_dict()
    return json.dumps(read, indent=2, sort_keys=True) + "\n"


@pytest.mark.parametrize(
    ("length", "text"),
    [(0, "0s"), (5, "5s"), (0.5, "0.500s"), (1.25, "1.250s"), (0.000_001, "0.000001s"), (90, "90s")],
)
def test_duration_has_zero_three_or_six_decimal_digits(length: float, text: str) -> None:
    """Protobuf's JSON has only these notations."""
    assert duration(timedelta(seconds=length)) == text
