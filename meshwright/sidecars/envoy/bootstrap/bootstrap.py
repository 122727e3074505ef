"""Envoy's bootstrap: who it is, where its control plane is, and how they know each other.

Written as the JSON that Envoy reads, in protobuf's spelling (https://protobuf.dev/programming-guides/json/):
no codec stands between, because the agent, which makes it beside every workload, would keep the codec in its
memory for a few hundred bytes. An independent codec, and Envoy, read it in the tests.
"""

import enum
import json
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap import credentials
from meshwright.sidecars.envoy.bootstrap.json_messages import Message, duration, packed

ADS_CLUSTER: Final = "meshwright-ads"
"""The one static cluster: the control plane."""

MAX_CONNECTIONS: Final = 50_000
"""Downstream connections that a proxy takes at once; Envoy warns where nothing bounds them."""
RECONNECT_FIRST: Final = timedelta(milliseconds=500)
RECONNECT_LONGEST: Final = timedelta(seconds=5)
"""The bounds of the pause before a stream is tried again: doubled each time, and a random part of it taken.

Envoy's own greatest is 30 s, so that after 10 s without a control plane some proxies were gone for half a
minute. Proxies are spread over this time when a control plane comes back.
"""
REGEX_PROGRAM_SIZE: Final = 65_536
"""How complex a policy's expression may be for RE2; Envoy's own limit of 100 refuses ordinary ones."""

_OWNER_ONLY: Final = 0o600
_HTTP_OPTIONS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_CONNECTIONS: Final = (
    "envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig"
)


class AdsProtocol(enum.StrEnum):
    """The variant of the aggregated protocol: changes only (delta), or whole state of the world."""

    DELTA = "delta"
    SOTW = "sotw"


@dataclass(frozen=True, slots=True)
class BootstrapSettings:
    """What a bootstrap is made from. The files are read by Envoy, so their paths are as Envoy sees them.

    `admin` is where Envoy's admin interface listens: HOST:PORT, which every user of the machine reaches, or
    the path of a Unix socket, which Envoy's own user reaches alone; None is nowhere.
    With `sds_directory`, Envoy looks at the three files again whenever something is moved into theirs (one
    directory, or a link that is replaced): the files that `sds_files` returns must stand there.
    """

    proxy_name: ProxyName
    trust_domain: TrustDomain
    ads_host: str
    ads_port: int
    certificate_file: Path
    key_file: Path
    ca_file: Path
    admin: HostPort | Path | None = None
    protocol: AdsProtocol = AdsProtocol.DELTA
    sds_directory: Path | None = None


def server_name(trust_domain: TrustDomain) -> str:
    """Return the name that the control plane's certificate must carry, `ads.<trust domain>`."""
    return f"ads.{trust_domain}"


def bootstrap(settings: BootstrapSettings) -> str:
    """Return a bootstrap as JSON, sorted and indented.

    The node id is the proxy's common name, its cluster `<service>.<namespace>`. The control plane is dialled
    over TLS 1.3, both bounds set (a client's default maximum is 1.2), and must be `ads.<trust domain>`.
    Without `sds_directory` Envoy reads the three files when it starts, and a renewed proxy certificate needs
    a new Envoy.
    """
    return _text(_message(settings))


def sds_files(settings: BootstrapSettings, watched: Path) -> dict[str, str]:
    """Return the secrets that a bootstrap with `sds_directory` refers to, by file name, as JSON.

    They name the three files, and `watched`: the directory in which a move means that the files are new.
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
        "setNodeOnFirstMessageOnly": True,
        "grpcServices": [
            {"envoyGrpc": {"clusterName": ADS_CLUSTER, "retryPolicy": {"retryBackOff": again}}},
        ],
    }


def _ads_cluster(settings: BootstrapSettings) -> Message:
    endpoint = {"address": _address(settings.ads_host, settings.ads_port)}
    return {
        "name": ADS_CLUSTER,
        "type": "STATIC" if _is_address(settings.ads_host) else "STRICT_DNS",
        "connectTimeout": duration(timedelta(seconds=5)),
        "loadAssignment": {
            "clusterName": ADS_CLUSTER,
            "endpoints": [{"lbEndpoints": [{"endpoint": endpoint}]}],
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
    """Return HTTP/2 with pings: a control plane that vanished without a word is noticed in 35 seconds.

    There is one stream, and a connection carries no second one: who is refused for its certificate comes
    again over a new connection, with the certificate that it has by then.
    """
    keepalive = {"interval": duration(timedelta(seconds=30)), "timeout": duration(timedelta(seconds=5))}
    explicit = {"http2ProtocolOptions": {"connectionKeepalive": keepalive}}
    once = {"maxRequestsPerConnection": 1}
    return packed(_HTTP_OPTIONS, {"commonHttpProtocolOptions": once, "explicitHttpConfig": explicit})


def _overload_manager() -> Message:
    # 64 bits wide, and so text in JSON.
    limit = packed(_CONNECTIONS, {"maxActiveDownstreamConnections": str(MAX_CONNECTIONS)})
    name = "envoy.resource_monitors.global_downstream_max_connections"
    return {"resourceMonitors": [{"name": name, "typedConfig": limit}]}


def _runtime() -> Message:
    """Return runtime settings: regexes of any size that the readers accept (Envoy's default is 100)."""
    layer = {"re2.max_program_size.error_level": float(REGEX_PROGRAM_SIZE)}
    return {"layers": [{"name": "meshwright", "staticLayer": layer}]}


def _address(host: str, port: int) -> Message:
    return {"socketAddress": {"address": host, "portValue": port}}


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
