"""Envoy's bootstrap: identity, control plane, and the authentication of both.

The bootstrap is built as JSON in protobuf's mapping (https://protobuf.dev/programming-guides/json/), without
a codec. The agent makes a bootstrap beside every workload and would otherwise keep the codec in memory for a
few hundred bytes of text. In the tests an independent codec and Envoy itself read the text.
"""

import enum
import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.server_addresses import is_ip_address
from meshwright.sidecars.envoy.bootstrap import credentials
from meshwright.sidecars.envoy.bootstrap.json_messages import Message, duration, packed

ADS_CLUSTER: Final = "meshwright-ads"
"""Name of the one static cluster, the control plane."""

MAX_CONNECTIONS: Final = 50_000
"""Greatest number of concurrent downstream connections; Envoy warns if the limit is missing."""
RECONNECT_FIRST: Final = timedelta(milliseconds=500)
RECONNECT_LONGEST: Final = timedelta(seconds=5)
"""Bounds of the pause before a stream is tried again; the pause doubles, and Envoy waits a random part.

Envoy's own upper bound is 30 s, with which some proxies were disconnected for half a minute after 10 s
without a control plane. Proxies spread over this time when a control plane returns.
"""
REGEX_PROGRAM_SIZE: Final = 65_536
"""Greatest RE2 program size of a policy's expression; Envoy's default of 100 refuses ordinary expressions."""

_OWNER_ONLY: Final = 0o600
_HTTP_OPTIONS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_CONNECTIONS: Final = (
    "envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig"
)


class AdsProtocol(enum.StrEnum):
    """Variant of Envoy's aggregated discovery (ADS): incremental, or state of the world."""

    DELTA = "delta"
    SOTW = "sotw"


@dataclass(frozen=True, slots=True)
class BootstrapSettings:
    """Inputs of a bootstrap. Paths are as Envoy sees them, because Envoy reads the files.

    `ads` are the addresses of the control plane's servers. Envoy begins with a random one, and goes on to the
    next when it cannot connect or loses its stream.

    `admin` is the address of Envoy's admin interface: a host and port, reachable by every user of the
    machine, or the path of a Unix socket, accessible to Envoy's user only; None disables it. With
    `sds_directory` Envoy reads the three files again whenever something is moved into their directory (or a
    link is replaced); the files from `sds_files` must be in that directory.
    """

    proxy_name: ProxyName
    trust_domain: TrustDomain
    ads: tuple[HostPort, ...]
    certificate_file: Path
    key_file: Path
    ca_file: Path
    admin: HostPort | Path | None = None
    protocol: AdsProtocol = AdsProtocol.DELTA
    sds_directory: Path | None = None


def server_name(trust_domain: TrustDomain) -> str:
    """Return the DNS name in the control plane's certificate, `ads.<trust domain>`."""
    return f"ads.{trust_domain}"


def bootstrap(settings: BootstrapSettings) -> str:
    """Return a bootstrap as JSON, sorted and indented.

    The node id is the proxy's common name, and the node's cluster is `<service>.<namespace>`, for example
    `cart.shop`. The control plane must present a certificate for `ads.<trust domain>`. TLS 1.3 is set as both
    minimum and maximum, because the default maximum of a client is 1.2. Without `sds_directory` Envoy reads
    the three files only at its start, so a renewed certificate needs a new Envoy.
    """
    return _text(_message(settings))


def sds_files(settings: BootstrapSettings, watched: Path) -> dict[str, str]:
    """Return the secrets for a bootstrap with `sds_directory`, as JSON by file name.

    They refer to the three files and to `watched`, the directory in which a move signals new files.
    """
    return {
        name: _text({"resources": [message]})
        for name, message in credentials.secrets(_files(settings), watched).items()
    }


def _text(message: Message) -> str:
    return json.dumps(message, indent=2, sort_keys=True) + "\n"


def _files(settings: BootstrapSettings) -> credentials.ProxyFiles:
    return credentials.ProxyFiles(
        settings.certificate_file,
        settings.key_file,
        settings.ca_file,
        server_name(settings.trust_domain),
        settings.sds_directory,
    )


def _message(settings: BootstrapSettings) -> Message:
    name = settings.proxy_name
    over_ads = {"ads": {}, "resourceApiVersion": "V3"}
    return {
        "node": {"id": str(name), "cluster": f"{name.service}.{name.namespace}"},
        **_admin(settings.admin),
        "dynamicResources": {
            "adsConfig": _ads(settings.protocol),
            "ldsConfig": over_ads,
            "cdsConfig": over_ads,
        },
        "staticResources": {"clusters": [_ads_cluster(settings)]},
        "overloadManager": _overload_manager(),
        "layeredRuntime": _runtime(),
    }


def _admin(at: HostPort | Path | None) -> Message:
    match at:
        case None:
            return {}
        case HostPort(host, port):
            return {"admin": {"address": _address(host, port)}}
        case Path():
            # Anyone with access to the admin interface can stop Envoy and read its configuration.
            return {"admin": {"address": {"pipe": {"path": str(at), "mode": _OWNER_ONLY}}}}


def _ads(protocol: AdsProtocol) -> Message:
    again = {"baseInterval": duration(RECONNECT_FIRST), "maxInterval": duration(RECONNECT_LONGEST)}
    match protocol:
        case AdsProtocol.DELTA:
            api_type = "DELTA_GRPC"
        case AdsProtocol.SOTW:
            api_type = "GRPC"
    return {
        "apiType": api_type,
        "transportApiVersion": "V3",
        # The node stays the same for the whole stream, so repeating it would only cost bytes.
        "setNodeOnFirstMessageOnly": True,
        "grpcServices": [
            {"envoyGrpc": {"clusterName": ADS_CLUSTER, "retryPolicy": {"retryBackOff": again}}},
        ],
    }


def _ads_cluster(settings: BootstrapSettings) -> Message:
    endpoints = [{"endpoint": {"address": _address(at.host, at.port)}} for at in settings.ads]
    return {
        "name": ADS_CLUSTER,
        # Envoy refuses a name in a STATIC cluster, and an address needs no DNS query. Beside names, Envoy
        # takes addresses as they are.
        "type": "STATIC" if all(is_ip_address(at.host) for at in settings.ads) else "STRICT_DNS",
        "connectTimeout": duration(timedelta(seconds=5)),
        "loadAssignment": {
            "clusterName": ADS_CLUSTER,
            "endpoints": [{"lbEndpoints": endpoints}],
        },
        "typedExtensionProtocolOptions": {_HTTP_OPTIONS: _http2()},
        "transportSocket": {
            "name": "envoy.transport_sockets.tls",
            "typedConfig": credentials.tls_context(_files(settings)),
        },
        "upstreamConnectionOptions": {
            "tcpKeepalive": {"keepaliveProbes": 5, "keepaliveTime": 60, "keepaliveInterval": 5}
        },
    }


def _http2() -> Message:
    """Return HTTP/2 options with pings: the loss of the control plane is noticed within 35 s.

    A connection carries one stream only. A proxy with a refused certificate therefore reconnects, and
    presents the certificate in use by then.
    """
    keepalive = {"interval": duration(timedelta(seconds=30)), "timeout": duration(timedelta(seconds=5))}
    explicit = {"http2ProtocolOptions": {"connectionKeepalive": keepalive}}
    once = {"maxRequestsPerConnection": 1}
    return packed(_HTTP_OPTIONS, {"commonHttpProtocolOptions": once, "explicitHttpConfig": explicit})


def _overload_manager() -> Message:
    # A 64-bit number, which JSON mappings of protobuf write as text.
    limit = packed(_CONNECTIONS, {"maxActiveDownstreamConnections": str(MAX_CONNECTIONS)})
    name = "envoy.resource_monitors.global_downstream_max_connections"
    return {"resourceMonitors": [{"name": name, "typedConfig": limit}]}


def _runtime() -> Message:
    """Return runtime settings that allow long regular expressions (Envoy's default program size is 100)."""
    layer = {"re2.max_program_size.error_level": float(REGEX_PROGRAM_SIZE)}
    return {"layers": [{"name": "meshwright", "staticLayer": layer}]}


def _address(host: str, port: int) -> Message:
    return {"socketAddress": {"address": host, "portValue": port}}
