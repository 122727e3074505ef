"""Envoy's bootstrap: who it is, where its control plane is, and how they know each other.

Built with envoy-data-plane, typed and validated. That package takes two seconds to import and warns while
it does, so it is imported where it is used, with its warnings held back.
"""

import enum
import json
import warnings
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mesh.identity import ProxyName
from mesh.names import TrustDomain
from sidecars.envoy import credentials
from sidecars.layout import ADMIN_PORT

if TYPE_CHECKING:
    from envoy_data_plane.envoy.config.bootstrap import v3 as bootstrap_v3
    from envoy_data_plane.envoy.config.cluster import v3 as cluster_v3
    from envoy_data_plane.envoy.config.core import v3 as core_v3
    from envoy_data_plane.envoy.config.overload import v3 as overload_v3
    from envoy_data_plane.google import protobuf

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

_TLS: Final = "envoy.transport_sockets.tls"
_HTTP_OPTIONS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


class AdsProtocol(enum.StrEnum):
    """The variant of the aggregated protocol: changes only (delta), or whole state of the world."""

    DELTA = "delta"
    SOTW = "sotw"


@dataclass(frozen=True, slots=True)
class BootstrapSettings:
    """What a bootstrap is made from. The files are read by Envoy, so their paths are as Envoy sees them.

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
    admin_host: str = "127.0.0.1"
    admin_port: int = ADMIN_PORT
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.dumps(_message(settings).to_dict(), indent=2, sort_keys=True) + "\n"


def sds_files(settings: BootstrapSettings, watched: Path) -> dict[str, str]:
    """Return the secrets that a bootstrap with `sds_directory` refers to, by file name, as JSON.

    They name the three files, and `watched`: the directory in which a move means that the files are new.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: json.dumps({"resources": [message]}, indent=2, sort_keys=True) + "\n"
            for name, message in credentials.secrets(_files(settings), watched).items()
        }


def _files(settings: BootstrapSettings) -> credentials.ProxyFiles:
    return credentials.ProxyFiles(
        settings.certificate_file,
        settings.key_file,
        settings.ca_file,
        server_name(settings.trust_domain),
        settings.sds_directory,
    )


def _message(settings: BootstrapSettings) -> "bootstrap_v3.Bootstrap":
    from envoy_data_plane.envoy.config.bootstrap import v3 as bootstrap_v3
    from envoy_data_plane.envoy.config.core import v3 as core_v3

    name = settings.proxy_name
    over_ads = core_v3.ConfigSource(
        ads=core_v3.AggregatedConfigSource(), resource_api_version=core_v3.ApiVersion.V3
    )
    return bootstrap_v3.Bootstrap(
        node=core_v3.Node(id=str(name), cluster=f"{name.service}.{name.namespace}"),
        admin=bootstrap_v3.Admin(address=_address(settings.admin_host, settings.admin_port)),
        dynamic_resources=bootstrap_v3.BootstrapDynamicResources(
            ads_config=_ads(settings.protocol), lds_config=over_ads, cds_config=over_ads
        ),
        static_resources=bootstrap_v3.BootstrapStaticResources(clusters=[_ads_cluster(settings)]),
        overload_manager=_overload_manager(),
        layered_runtime=_runtime(),
    )


def _ads(protocol: AdsProtocol) -> "core_v3.ApiConfigSource":
    from envoy_data_plane.envoy.config.core import v3 as core_v3

    again = core_v3.BackoffStrategy(base_interval=RECONNECT_FIRST, max_interval=RECONNECT_LONGEST)
    match protocol:
        case AdsProtocol.DELTA:
            api_type = core_v3.ApiConfigSourceApiType.DELTA_GRPC
        case AdsProtocol.SOTW:
            api_type = core_v3.ApiConfigSourceApiType.GRPC
    return core_v3.ApiConfigSource(
        api_type=api_type,
        transport_api_version=core_v3.ApiVersion.V3,
        set_node_on_first_message_only=True,
        grpc_services=[
            core_v3.GrpcService(
                envoy_grpc=core_v3.GrpcServiceEnvoyGrpc(
                    cluster_name=ADS_CLUSTER, retry_policy=core_v3.RetryPolicy(retry_back_off=again)
                )
            )
        ],
    )


def _ads_cluster(settings: BootstrapSettings) -> "cluster_v3.Cluster":
    from envoy_data_plane.envoy.config.cluster import v3 as cluster_v3
    from envoy_data_plane.envoy.config.core import v3 as core_v3
    from envoy_data_plane.envoy.config.endpoint import v3 as endpoint_v3

    kinds = cluster_v3.ClusterDiscoveryType
    endpoint = endpoint_v3.Endpoint(address=_address(settings.ads_host, settings.ads_port))
    return cluster_v3.Cluster(
        name=ADS_CLUSTER,
        type=kinds.STATIC if _is_address(settings.ads_host) else kinds.STRICT_DNS,
        connect_timeout=timedelta(seconds=5),
        load_assignment=endpoint_v3.ClusterLoadAssignment(
            cluster_name=ADS_CLUSTER,
            endpoints=[
                endpoint_v3.LocalityLbEndpoints(lb_endpoints=[endpoint_v3.LbEndpoint(endpoint=endpoint)])
            ],
        ),
        typed_extension_protocol_options={_HTTP_OPTIONS: _http2()},
        transport_socket=core_v3.TransportSocket(
            name=_TLS, typed_config=credentials.tls_context(_files(settings))
        ),
        upstream_connection_options=cluster_v3.UpstreamConnectionOptions(
            tcp_keepalive=core_v3.TcpKeepalive(keepalive_probes=5, keepalive_time=60, keepalive_interval=5)
        ),
    )


def _http2() -> "protobuf.Any":
    """Return HTTP/2 with pings: a control plane that vanished without a word is noticed in 35 seconds."""
    from envoy_data_plane.envoy.config.core import v3 as core_v3
    from envoy_data_plane.envoy.extensions.upstreams.http import v3 as http_v3
    from envoy_data_plane.google import protobuf

    keepalive = core_v3.KeepaliveSettings(interval=timedelta(seconds=30), timeout=timedelta(seconds=5))
    explicit = http_v3.HttpProtocolOptionsExplicitHttpConfig(
        http2_protocol_options=core_v3.Http2ProtocolOptions(connection_keepalive=keepalive)
    )
    return protobuf.Any.pack(http_v3.HttpProtocolOptions(explicit_http_config=explicit))


def _overload_manager() -> "overload_v3.OverloadManager":
    from envoy_data_plane.envoy.config.overload import v3 as overload_v3
    from envoy_data_plane.envoy.extensions.resource_monitors.downstream_connections import v3 as monitors_v3
    from envoy_data_plane.google import protobuf

    limit = monitors_v3.DownstreamConnectionsConfig(max_active_downstream_connections=MAX_CONNECTIONS)
    return overload_v3.OverloadManager(
        resource_monitors=[
            overload_v3.ResourceMonitor(
                name="envoy.resource_monitors.global_downstream_max_connections",
                typed_config=protobuf.Any.pack(limit),
            )
        ]
    )


def _runtime() -> "bootstrap_v3.LayeredRuntime":
    """Return runtime settings: regexes of any size that the readers accept (Envoy's default is 100)."""
    from envoy_data_plane.envoy.config.bootstrap import v3 as bootstrap_v3
    from envoy_data_plane.google import protobuf

    layer = protobuf.Struct.from_dict({"re2.max_program_size.error_level": REGEX_PROGRAM_SIZE})
    return bootstrap_v3.LayeredRuntime(
        layers=[bootstrap_v3.RuntimeLayer(name="meshwright", static_layer=layer)]
    )


def _address(host: str, port: int) -> "core_v3.Address":
    from envoy_data_plane.envoy.config.core import v3 as core_v3

    return core_v3.Address(socket_address=core_v3.SocketAddress(address=host, port_value=port))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
