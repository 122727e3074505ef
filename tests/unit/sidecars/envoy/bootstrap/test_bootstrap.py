"""The bootstrap as a value; what Envoy thinks of it is asked elsewhere."""

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
    """Settings of one proxy."""
    return BootstrapSettings(
        proxy_name=ProxyName.parse("u1.shop.default"),
        trust_domain=TrustDomain("mesh.example"),
        ads_host=host,
        ads_port=15128,
        certificate_file=Path("/run/proxy.pem"),
        key_file=Path("/run/proxy.key"),
        ca_file=Path("/run/ca.pem"),
        protocol=protocol,
        sds_directory=sds_directory,
    )


def made(
    protocol: AdsProtocol = AdsProtocol.DELTA, host: str = "127.0.0.1", sds_directory: Path | None = None
) -> dict[str, Any]:
    """Make a bootstrap and read it."""
    found: dict[str, Any] = json.loads(bootstrap(settings(protocol, host, sds_directory)))
    return found


def test_who_and_where() -> None:
    """The node is the proxy's common name; there is an admin interface where one is asked for."""
    found = made()
    assert found["node"] == {"id": "u1.shop.default", "cluster": "shop.default"}
    assert "admin" not in found


@pytest.mark.parametrize(
    ("at", "address"),
    [
        (HostPort("127.0.0.1", 15000), {"socketAddress": {"address": "127.0.0.1", "portValue": 15000}}),
        (Path("/run/meshwright/admin.sock"), {"pipe": {"path": "/run/meshwright/admin.sock", "mode": 0o600}}),
    ],
)
def test_where_the_admin_interface_listens(at: HostPort | Path, address: dict[str, Any]) -> None:
    """A socket is for Envoy's own user alone; a port is for every user of the machine."""
    found = json.loads(bootstrap(replace(settings(), admin=at)))
    assert found["admin"] == {"address": address}


@pytest.mark.parametrize(("protocol", "api"), [(AdsProtocol.DELTA, "DELTA_GRPC"), (AdsProtocol.SOTW, "GRPC")])
def test_the_protocol_is_a_choice(protocol: AdsProtocol, api: str) -> None:
    """Both variants of the aggregated protocol can be asked for."""
    ads = made(protocol)["dynamicResources"]["adsConfig"]
    assert (ads["apiType"], ads["setNodeOnFirstMessageOnly"]) == (api, True)


@pytest.mark.parametrize("protocol", AdsProtocol)
def test_a_lost_stream_is_tried_again_within_seconds(protocol: AdsProtocol) -> None:
    """Envoy's own pause grows to 30 s, which is how long a proxy could stay away from who is back."""
    (service,) = made(protocol)["dynamicResources"]["adsConfig"]["grpcServices"]
    again = service["envoyGrpc"]["retryPolicy"]["retryBackOff"]
    assert again == {"baseInterval": "0.500s", "maxInterval": "5s"}


@pytest.mark.parametrize(("host", "kind"), [("127.0.0.1", "STATIC"), ("ads.example", "STRICT_DNS")])
def test_the_control_plane_is_checked(host: str, kind: str) -> None:
    """TLS 1.3 at both ends of the range, and exactly the control plane's name, whatever the host."""
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


def test_with_a_directory_the_files_are_read_again() -> None:
    """Certificate and trust come from SDS files, whose directory is watched; nothing stands inline."""
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


def test_sds_files_lead_to_the_three_files_and_keep_the_check_of_the_name() -> None:
    """They hold no secret themselves; who the control plane must be is said there as it was inline."""
    watched = {"watchedDirectory": {"path": "/run/certificates"}}
    kind = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
    name = {"sanType": "DNS", "matcher": {"exact": "ads.mesh.example"}}
    found = sds_files(settings(sds_directory=Path("/run/sds")), Path("/run/certificates"))
    assert {file: json.loads(text)["resources"] for file, text in found.items()} == {
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
def test_an_independent_codec_reads_all_of_it(
    protocol: AdsProtocol, host: str, sds_directory: Path | None
) -> None:
    """What it reads, it writes the same: every field is Envoy's, of its type, and spelt as it is there."""
    chosen = settings(protocol, host, sds_directory)
    assert _written_by_the_codec("config.bootstrap.v3", "Bootstrap", bootstrap(chosen)) == bootstrap(chosen)


def test_an_independent_codec_reads_the_secrets() -> None:
    """As they stand in their files, which hold DiscoveryResponses."""
    for text in sds_files(settings(sds_directory=Path("/run/sds")), Path("/run/certificates")).values():
        again = _written_by_the_codec("service.discovery.v3", "DiscoveryResponse", text)
        assert again == text


def _written_by_the_codec(package: str, name: str, text: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in ("extensions.transport_sockets.tls", "extensions.upstreams.http", _MONITOR):
            importlib.import_module(f"envoy_data_plane.envoy.{each}.v3")  # what stands inside as Any
        message = getattr(importlib.import_module(f"envoy_data_plane.envoy.{package}"), name)
        read = message.from_dict(json.loads(text), ignore_unknown_fields=False).to_dict()
    return json.dumps(read, indent=2, sort_keys=True) + "\n"


@pytest.mark.parametrize(
    ("length", "text"),
    [(0, "0s"), (5, "5s"), (0.5, "0.500s"), (1.25, "1.250s"), (0.000_001, "0.000001s"), (90, "90s")],
)
def test_a_duration_has_no_three_or_six_digits(length: float, text: str) -> None:
    """As protobuf's JSON has it."""
    assert duration(timedelta(seconds=length)) == text
