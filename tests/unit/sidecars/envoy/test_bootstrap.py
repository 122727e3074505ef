"""The bootstrap as a value; what Envoy thinks of it is asked elsewhere."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mesh.identity import ProxyName
from mesh.names import TrustDomain
from sidecars.envoy.bootstrap import AdsProtocol, BootstrapSettings, bootstrap, sds_files


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
    """The node is the proxy's common name; the admin interface is on loopback."""
    found = made()
    assert found["node"] == {"id": "u1.shop.default", "cluster": "shop.default"}
    assert found["admin"]["address"]["socketAddress"] == {"address": "127.0.0.1", "portValue": 15000}


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


def test_the_slow_import_is_put_off() -> None:
    """Importing the translation and the bootstrap does not import envoy-data-plane."""
    code = (
        "import sys, sidecars.envoy.bootstrap, sidecars.envoy.pieces;"
        "print(any(name.startswith('envoy_data_plane') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
