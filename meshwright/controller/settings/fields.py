"""The server's settings: their names, types, bounds, defaults and descriptions."""

from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from catalog.store.settings import (
    VIRTUAL_IPV6,
    DenialReasons,
    EndpointAdmission,
    HeaderLimits,
    MethodOverrides,
)
from certs.contract import IssuerKind, KeyKind
from certs.lifetimes import BACKDATED, MOST_DAYS, VALIDITY
from meshwright.controller.process.logs import LogFormat, LogLevel
from meshwright.controller.settings.error_text import ENVIRONMENT_PREFIX
from meshwright.controller.settings.store_kind import StoreKind
from meshwright.controller.settings.values import (
    Domain,
    Hosts,
    Listening,
    Listenings,
    MaybeConfigMap,
    MaybeIssuer,
    MaybeListening,
    MaybeName,
    MaybePath,
    MaybeRevision,
    Nameservers,
    Namespaces,
    OneNamespace,
    PeerHost,
    Proofs,
    Providers,
    Seconds,
    Selector,
    Upgrades,
    VaultNamespace,
    VaultUrl,
    WebhookPlace,
    WithRoomForIpv4,
)
from meshwright.mesh.host_port import HostPort


class Fields(BaseSettings):
    """Each setting by itself; durations are in seconds.

    `meshwright.controller.settings.settings.Settings` adds where values come from, and which fit together.
    """

    # The validator is built when settings are read, so that only that of the whole class is.
    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        defer_build=True,
    )

    mesh: MaybePath = None
    """Directory of manifests, which the server watches. If empty, the mesh is read only from
    `kubernetes` and `providers`."""
    kubernetes: bool = False
    """Read the mesh from a Kubernetes cluster, in addition to `mesh` or instead of it."""
    kubeconfig: MaybePath = None
    """Kubeconfig file of the cluster. If empty: the ServiceAccount of the server's Pod, unless
    `kube_context` is set; else the files in $KUBECONFIG; else ~/.kube/config."""
    kube_context: str = ""
    """Context of the kubeconfig file. If empty, the file's current context."""
    namespaces: Namespaces = ()
    """Namespaces of the cluster to read, for example shop,bank. If empty, all namespaces."""
    namespace_selector: Selector = ""
    """Label selector that namespaces must match in addition to `namespaces`, for example
    openservicemesh.io/monitored-by=osm. If empty, labels do not matter."""
    kubernetes_reports: bool = True
    """Write status conditions and Events for the objects of the cluster. Set `no` if the server may
    only read the cluster."""
    state: Path
    """Directory for the server's CA, private keys, ledger of proxy certificates, and Unix socket. Each
    server needs a directory of its own."""
    store: StoreKind = StoreKind.DIRECTORY
    """Place of the CA, the ledger of proxy certificates, service certificates and join tokens.
    `directory`: the state directory of the only server. `kubernetes`: records in the namespace of the
    control plane, which several servers share (experimental; docs/operate/several-servers.md). `etcd`:
    records in etcd, which several servers share without a cluster (experimental; docs/start/etcd.md)."""
    peer_address: MaybeListening = None
    """Address on which the servers of one mesh ask each other, by HTTP with mutual TLS. If empty, port
    15132 on all addresses, or a free port if that one is in use. Not used with `store` directory."""
    peer_reached_at: PeerHost = ""
    """Host name or IP address at which the other servers reach `peer_address`. If empty, the address in
    $POD_IP, else the name of the machine."""
    shared_state: bool = False
    """Start even if other users can read the state directory or the keys in it. Set `yes` only if the
    file modes of the volume cannot be changed."""
    key_passphrase_file: MaybePath = None
    """File with the passphrase that encrypts the private keys in the state directory. If empty, the
    keys are not encrypted."""
    authority_directory: MaybePath = None
    """Directory with the mesh CA, which signs certificates of proxies and of the server: tls.crt (CA
    certificate and intermediates), tls.key, and ca.crt (roots; may be absent if the CA is a root). If
    empty, the server creates a CA of its own."""
    authority_certificate: MaybePath = None
    """File with the mesh CA's certificate and its intermediates. Use `authority_certificate` and
    `authority_key` instead of `authority_directory` if the files are in different places."""
    authority_key: MaybePath = None
    """File with the private key for `authority_certificate`."""
    authority_roots: MaybePath = None
    """File with the root certificates for `authority_certificate`. Needed only if the CA is an
    intermediate."""
    root_secrets: MaybePath = None
    """Directory with the Secrets that MeshRootCertificates refer to, as NAMESPACE/NAME. A Secret
    without a directory is generated by the server."""
    begin_anew: str = ""
    """Serial from the error message of a server that has lost its CA or its ledger. The server then
    starts with a new CA or ledger, and proxies of the lost one must join again."""
    rebuild_ledger: str = ""
    """Serial from the error message of a server that has lost its ledger. The server then admits no
    proxy, and records the certificates that proxies present, so that `meshwright certs rebuild-ledger`
    can confirm them."""
    config: Path | None = None
    """YAML file with any of these settings. Flags and environment variables override the file."""
    ads_address: Listening = HostPort("::", 15128)
    """Address on which proxies connect to the ADS server, by gRPC with mutual TLS."""
    driver_addresses: Listenings = {}
    """Listen addresses of sidecar drivers, for example document=127.0.0.1:15129. The server starts each
    driver named here, even if no workload uses the driver."""
    http_address: Listening = HostPort("::", 9091)
    """Address of the HTTP server for health checks and metrics."""
    debug_address: Listening = HostPort("127.0.0.1", 9092)
    """Address of the HTTP server for debug pages and the API. Keep the address private, because callers
    are not authenticated."""
    debug_hosts: Hosts = ()
    """Additional host names that requests to the debug pages may use in their Host header. Requests for
    other names are refused."""
    ads_hosts: Hosts = ()
    """Additional DNS names and IP addresses for the ADS server's certificate."""
    trust_domain: Domain = "cluster.local"
    """SPIFFE trust domain of all identities in the mesh."""
    cluster_domain: Domain = "cluster.local"
    """DNS domain of services, which is the last part of their names: store.shop.svc.cluster.local."""
    virtual_addresses: IPv4Network = IPv4Network("240.0.0.0/8")
    """IPv4 range from which services without a cluster IP get a virtual address. Change the range if
    your network uses the default."""
    virtual_addresses_ipv6: WithRoomForIpv4 = VIRTUAL_IPV6
    """IPv6 range of virtual addresses for workloads whose IPv6 traffic is captured: /96 or larger. The
    last 32 bits of an address are the service's IPv4 address."""
    log_level: LogLevel = LogLevel.INFO
    """Lowest severity that is logged."""
    log_format: LogFormat = LogFormat.AUTO
    """Format of the log. `auto` is `console` on a terminal and `json` elsewhere."""
    quiet_seconds: Seconds = 0.1
    """Seconds without another change after which a burst of changes is published. A larger value gives
    fewer, larger updates; a smaller value publishes sooner."""
    longest_seconds: Seconds = 1.0
    """Longest time in seconds that a change waits for the end of its burst. At least `quiet_seconds`."""
    endpoint_quiet_seconds: Seconds = 0.1
    """Like `quiet_seconds`, for bursts that change only workloads and endpoints. Raise the value if
    large rollouts cause too many updates."""
    endpoint_longest_seconds: Seconds = 1.0
    """Like `longest_seconds`, for bursts that change only workloads and endpoints. At least
    `endpoint_quiet_seconds`."""
    lingering_seconds: Annotated[float, Field(ge=0, le=86400)] = 300.0
    """Seconds for which the server keeps a proxy's configuration current after the last stream of its
    group has ended. A proxy that reconnects within this time gets its configuration at once. 0: drop
    the configuration with the last stream."""
    held_seconds: Seconds = 60.0
    """Seconds after which a stream is ended if its workload is unknown or was deleted."""
    recheck_seconds: Seconds = 30.0
    """Interval in seconds between checks of an open stream's certificate. A smaller value ends streams
    with expired certificates sooner, and costs CPU time."""
    drain_seconds: Annotated[float, Field(ge=0, le=3600)] = 5.0
    """Seconds that streams get to finish at the end of the server. 0: cut off all streams at once."""
    shutdown_delay_seconds: Annotated[float, Field(ge=0, le=3600)] = 0.0
    """Seconds after SIGTERM for which the server serves on, although it is not ready, so that load
    balancers stop sending connections first. Set 5 if other servers serve the same mesh; with a shared
    `store`, 5 is the default."""
    shutdown_spread_seconds: Annotated[float, Field(ge=0, le=3600)] = 0.0
    """Seconds over which the server ends streams one after another, after `shutdown_delay_seconds`. 0:
    end all streams together. Set 20 if other servers serve the same mesh, so that they do not get all
    proxies at the same moment; with a shared `store`, 20 is the default."""
    heartbeat_seconds: Seconds = 10.0
    """Seconds that the event loop may be blocked before the liveness check fails."""
    streams_per_certificate: Annotated[int, Field(ge=1, le=1000)] = 8
    """Calls that may be open at the same time with one certificate, of all kinds together: discovery,
    client status, health. Further calls are refused."""
    types_per_certificate: Annotated[int, Field(ge=5, le=10_000)] = 64
    """Resource types that one certificate may request, on all its streams together. The call above the
    limit is ended."""
    names_per_certificate: Annotated[int, Field(ge=1, le=10_000_000)] = 100_000
    """Resource names that one certificate may subscribe to or report as held, on all its streams
    together. The call above the limit is ended."""
    bytes_per_certificate: Annotated[int, Field(ge=2**20, le=2**34)] = 20 * 1024 * 1024
    """Bytes of memory for the data that one certificate has sent, on all its streams together: names,
    versions, node. The call above the limit is ended. For sidecars with more than 10,000 clusters,
    raise this limit, `names_per_certificate` and `request_bytes` together."""
    loop_share: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Share of the event loop's time that the requests of one proxy may use in the long run, from 0 to
    1. Requests above the share wait."""
    loop_burst_seconds: Annotated[float, Field(gt=0, le=60)] = 0.05
    """Seconds of the event loop's time that one proxy may use at once after a pause, above `loop_share`."""
    max_streams: Annotated[int, Field(ge=1, le=1_000_000)] = 20_000
    """Open streams of all proxies together. Further streams are refused."""
    streams_per_second: Annotated[float, Field(gt=0, le=1_000_000)] = 1000.0
    """New streams per second. Further streams wait for at most `admission_seconds`. Lower the value if
    the server is overloaded when all proxies reconnect."""
    admission_seconds: Seconds = 10.0
    """Longest time in seconds that a new stream waits because of `streams_per_second`. After this time
    the stream is refused, and the proxy tries again."""
    max_connections: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Open connections to the server of one sidecar driver. Further connections are closed at once. If
    empty, the limit is the number of file descriptors, less a reserve of 256."""
    idle_connections: Annotated[int, Field(ge=16, le=1_000_000)] = 4000
    """Connections without a call, including those in their TLS handshake; never more than half of all
    connections. Above the limit the oldest are closed. A quarter of the limit holds for connections
    that have never sent a byte. Set at least the number of proxies that may reconnect at the same
    moment."""
    idle_connection_seconds: Seconds = 60.0
    """Seconds after which a connection without a call is closed."""
    handshake_seconds: Seconds = 5.0
    """Seconds within which a connection must finish its TLS and HTTP/2 handshake. Slower connections
    are closed."""
    calls_at_once: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """Calls that may be started with one certificate in a burst. Each call counts, even if it fails.
    Above the limit the call is refused and its connection is closed."""
    calls_per_second: Annotated[float, Field(gt=0, le=1_000_000)] = 10.0
    """Calls per second that may be started with one certificate in the long run. `calls_at_once` bounds
    the burst."""
    received_bytes_per_second: Annotated[float, Field(ge=1024, le=2**30)] = 1024 * 1024
    """Bytes per second that a connection may send in the long run, in addition to a burst of eight
    times `request_bytes`. Faster connections are closed."""
    stream_age_seconds: Seconds = 1800.0
    """Age in seconds at which the server ends a stream in order, plus or minus 10 %. The proxy then
    reconnects."""
    write_seconds: Seconds = 20.0
    """Seconds for which a proxy may leave a response unread. After this time its stream is ended."""
    warming_seconds: Seconds = 16.0
    """Longest time in seconds that listeners and routes wait until the proxy has warmed its clusters.
    Envoy itself waits for 15 s; use a larger value."""
    request_bytes: Annotated[int, Field(ge=65_536, le=2**30)] = 4 * 1024 * 1024
    """Size limit of one discovery request, in bytes. Larger requests are refused."""
    node_bytes: Annotated[int, Field(ge=1024, le=2**24)] = 256 * 1024
    """Size limit of the node, and of any other single field of a long request, in bytes. Larger fields
    end the call."""
    name_characters: Annotated[int, Field(ge=64, le=65_536)] = 4096
    """Length limit of a resource name, in characters. A longer name ends the call."""
    type_url_characters: Annotated[int, Field(ge=128, le=65_536)] = 512
    """Length limit of a resource type URL, in characters. A longer URL ends the call."""
    client_status_bytes: Annotated[int, Field(ge=65_536, le=2**30)] = 4 * 1024 * 1024
    """Size limit in bytes of the client status that a proxy can request about its own streams."""
    endpoint_admission: EndpointAdmission = EndpointAdmission.READY
    """Condition for a workload to get traffic for the first time. `off`: none. `identity`: its sidecar
    has authenticated with its certificate. `ready`: its sidecar has acknowledged its inbound listeners.
    Set `off` if several servers with separate state directories serve the same mesh."""
    headers_per_message: Annotated[int, Field(ge=1, le=10_000)] = HeaderLimits().count
    """Number of headers that a request or response may have at a sidecar. A request with more is
    answered 431, and a response with more becomes a 502."""
    header_kibibytes: Annotated[int, Field(ge=1, le=8192)] = HeaderLimits().kibibytes
    """Total size in KiB of the headers that a request or response may have at a sidecar. A larger
    request is answered 431, and a larger response becomes a 502."""
    denial_reasons: DenialReasons = DenialReasons.CALLERS
    """Recipients of the reason for a denied request. `callers`: callers in the mesh, in a response
    header, and the sidecar's access log. `log`: the access log only. `off`: sidecars do not determine
    the reason."""
    method_override_headers: MethodOverrides = MethodOverrides.KEEP
    """Handling of headers with which some frameworks replace the method of a request, for example
    X-HTTP-Method-Override. `keep`: applications receive the headers. `remove`: sidecars strip the
    headers, so that a caller that may only POST cannot DELETE."""
    trace_sampling: Annotated[float, Field(ge=0, le=100)] = 100.0
    """Percentage of requests that are traced. Has an effect only if the MeshConfig configures a tracing
    collector."""
    trace_collector: MaybeListening = None
    """Address to which the control plane sends its own spans (OTLP over gRPC), for example
    otel-collector:4317. If empty, the control plane creates no spans (docs/debug/debugging.md)."""
    trace_collector_tls: bool = False
    """Connect to `trace_collector` with TLS."""
    trace_collector_ca: MaybePath = None
    """File with the CA certificates that verify `trace_collector`. If empty, the CA certificates that
    gRPC includes. Needs `trace_collector_tls`."""
    connect_seconds: Annotated[float, Field(ge=0.1, le=60)] = 2.0
    """Seconds within which a connection between sidecars must be established, including TLS. After this
    time the attempt has failed."""
    connect_retries: Annotated[int, Field(ge=0, le=10)] = 2
    """Number of retries of a request that has not reached an application, at another endpoint if there
    is one; also of a TCP connection that could not be made. 0: no retries."""
    ejecting_failures: Annotated[int, Field(ge=0, le=1000)] = 5
    """Consecutive failures (connection failure, 502, 503 or 504) after which a sidecar ejects an
    endpoint for a while. 0: endpoints are not ejected."""
    ejecting_server_errors: Annotated[int, Field(ge=0, le=1000)] = 0
    """Consecutive responses with status 500 or above after which a sidecar ejects an endpoint. 0: these
    responses do not count, because applications may send them for a fault of the caller. Needs
    `ejecting_failures`."""
    ejected_seconds: Annotated[float, Field(ge=1, le=300)] = 10.0
    """Seconds of an endpoint's first ejection. Each further ejection is longer by this value, up to 300 s."""
    ejected_percent: Annotated[int, Field(ge=1, le=100)] = 50
    """Percentage of a service's endpoints that a sidecar may eject at the same time. With the default
    of 50, a service's only endpoint is not ejected."""
    peer_silence_seconds: Annotated[int, Field(ge=0, le=3600)] = 10
    """Seconds after which a sidecar closes a connection whose peer machine has confirmed no data and no
    keep-alive probe. 0, or at least 4. 0: keep-alive is off, and a lost machine may block requests for
    about 15 minutes."""
    connection_reuse_seconds: Annotated[int, Field(ge=0, le=3600)] = 1
    """Seconds for which sidecars keep an idle HTTP connection to an application or to a host outside
    the mesh. Must be less than the application's own keep-alive time, because otherwise some requests
    are answered 503. 0: Envoy's default of one hour."""
    tcp_idle_seconds: Annotated[int, Field(ge=0, le=31_536_000)] = 604_800
    """Seconds without data in either direction after which each sidecar on the path closes a TCP
    connection. TCP keep-alive probes do not count as data. 0: without limit
    (docs/debug/envoy-defaults.md)."""
    http_upgrades: Upgrades = ("websocket",)
    """Values of the Upgrade header that sidecars pass to applications, in upper or lower case. Sidecars
    remove all other values, and the request stays plain HTTP."""
    dead_after_seconds: Annotated[float, Field(ge=0, le=86400)] = 60.0
    """Seconds without a stream after which a sidecar that its callers have ejected is shown as dead.
    Affects only the output: the endpoint stays in its service."""
    empty_answer_hold_seconds: Annotated[float, Field(ge=0, le=86400)] = 30.0
    """Seconds to wait before an empty result is accepted from a source that had objects. The last known
    objects stay in force meanwhile. 0: accept an empty result at once."""
    providers: Providers = {}
    """Installed third-party sources and their options (docs/extend/providers.md)."""
    dns_nameservers: Nameservers = ()
    """IP addresses of the name servers that resolve DNS names of services, with optional ports, for
    example 10.0.0.10:53. If empty, the name servers of the system."""
    dns_floor_seconds: Seconds = 5.0
    """Shortest time in seconds between two queries for a DNS name, if its TTL is shorter."""
    dns_ceiling_seconds: Seconds = 300.0
    """Longest time in seconds between two queries for a DNS name, if its TTL is longer. At least
    `dns_floor_seconds`."""
    dns_timeout_seconds: Seconds = 5.0
    """Seconds after which a DNS query has failed, over all name servers together."""
    webhook_address: MaybeListening = None
    """Address of the HTTPS server for Kubernetes admission webhooks. If empty, there is no webhook.
    Needs `kubernetes` and `webhook_reached_at`."""
    webhook_reached_at: WebhookPlace = None
    """Address at which API servers reach the webhook: NAMESPACE/SERVICE or NAMESPACE/SERVICE:PORT in
    the cluster, or https://HOST:PORT."""
    webhook_register: bool = True
    """Create the webhook configurations in the cluster and keep them up to date. `no`: apply the output
    of `meshwright webhook` yourself."""
    injection: bool = False
    """Inject sidecars into new Pods, by a webhook at `webhook_address` (docs/start/injection.md)."""
    injection_config: MaybePath = None
    """File with the injection configuration (docs/start/injection.md). The server reads the file again when
    it changes."""
    injection_config_map: MaybeConfigMap = None
    """ConfigMap with the injection configuration, instead of `injection_config`: NAMESPACE/NAME, or
    NAMESPACE/NAME/KEY if the key is not config.yaml. The server watches the ConfigMap."""
    revision: MaybeRevision = ""
    """Revision of this control plane, if a cluster has several: namespaces and Pods choose one with the
    label meshwright.dev/revision. If empty, the default control plane."""
    enrolment_address: MaybeListening = None
    """Address of the enrolment server, at which machines without a certificate join. If empty, machines
    cannot join."""
    renewal_address: MaybeListening = None
    """Address at which agents renew their certificates and get the mesh's root certificates. If empty,
    agents cannot renew."""
    enrolment_proofs: Proofs = ("join-token",)
    """Kinds of proof that a joining machine may present: join-token, kubernetes, or the name of an
    installed proof."""
    roots_config_map: MaybeName = "meshwright-roots"
    """Name of the ConfigMap with the mesh's root certificates that the server creates in each namespace
    with sidecars. Joining Pods verify the control plane with it. If empty, you create the ConfigMap
    yourself. Used only if `enrolment_proofs` includes kubernetes."""
    trust_seconds: Annotated[int, Field(ge=1, le=86400)] = 600
    """Interval in seconds at which agents request the mesh's root certificates. While the root changes,
    the interval is 5 s."""
    verify: bool = False
    """After each change, compute all configuration from scratch as well, and compare the results. For
    tests and for diagnosis, because each change then costs much more CPU time."""
    issuer: IssuerKind = IssuerKind.BUILT_IN
    """Issuer of service certificates. `built-in`: the mesh CA. `files`: a CA in files (`ca_...`).
    `vault`: the PKI of a Vault or OpenBao (`vault_...`). `cert-manager`: an issuer of cert-manager
    (`cert_manager_...`)."""
    ca_directory: MaybePath = None
    """Directory with the CA for `issuer` files, like a mounted Secret: tls.crt, tls.key and ca.crt. The
    server watches the directory."""
    ca_certificate: MaybePath = None
    """File with the CA certificate and its intermediates. Use `ca_certificate` and `ca_key` instead of
    `ca_directory` if the files are in different places."""
    ca_key: MaybePath = None
    """File with the private key for `ca_certificate`."""
    ca_roots: MaybePath = None
    """File with the root certificates for `ca_certificate`. Needed only if the CA is an intermediate."""
    vault_address: VaultUrl = ""
    """URL of the Vault, for example https://vault.example:8200."""
    vault_ca: MaybePath = None
    """File with the CA certificates that verify the Vault. If empty, the CA certificates of the system."""
    vault_namespace: VaultNamespace = ""
    """Namespace in the Vault. Leave empty if the Vault has no namespaces."""
    vault_mount: str = "pki"
    """Mount path of the PKI secrets engine."""
    vault_role: str = ""
    """Role of the PKI that signs certificates."""
    vault_roots: MaybePath = None
    """File with the PKI's root certificates. Needed only if the Vault's chain does not include them."""
    vault_token_file: MaybePath = None
    """File with a token for the login at the Vault. Set exactly one of `vault_token_file`,
    `vault_approle_file` and `vault_kubernetes_role`."""
    vault_approle_file: MaybePath = None
    """File with the role_id and the secret_id for an AppRole login, one per line."""
    vault_kubernetes_role: str = ""
    """Role for a Kubernetes login with the ServiceAccount token of the server's Pod."""
    vault_kubernetes_token_file: MaybePath = None
    """File with another ServiceAccount token for the Kubernetes login. If empty, the default token of
    the Pod."""
    vault_auth_mount: str = ""
    """Mount path of the login method. If empty, approle or kubernetes."""
    cert_manager_issuer: MaybeIssuer = None
    """Issuer that signs service certificates: Issuer/NAME, ClusterIssuer/NAME, or KIND.GROUP/NAME for
    an external issuer. The cluster is chosen by `kubeconfig` and `kube_context`; if both are empty, the
    cluster of the server's Pod."""
    cert_manager_namespace: OneNamespace = ""
    """Namespace for CertificateRequests. For an Issuer it must be the Issuer's own namespace. If empty,
    the control plane's namespace."""
    cert_manager_roots: MaybePath = None
    """File with the issuer's root certificates. If empty, the roots that the issuer returns with each
    certificate."""
    cert_manager_seconds: Seconds = 60.0
    """Seconds to wait until a CertificateRequest is signed. After this time the request has failed."""
    service_certificate_key: KeyKind = KeyKind.ECDSA_P256
    """Key type of new service certificates. Existing certificates keep their key until renewal."""
    certificate_backdate: Annotated[float, Field(ge=0, le=300)] = BACKDATED.total_seconds()
    """Seconds by which the start of a service certificate's validity precedes its issue, at most a
    tenth of the lifetime. Raise the value if clocks in the mesh are behind. No effect if `issuer` is
    cert-manager."""
    proxy_certificate_days: Annotated[int, Field(ge=1, le=MOST_DAYS)] = VALIDITY.days
    """Lifetime in days of proxy certificates that are issued without an explicit lifetime."""
    proxy_claim_days: Annotated[int, Field(ge=1, le=MOST_DAYS)] | None = None
    """Days within which a new proxy certificate must be used for the first time. After this
    time the certificate is refused. If empty, there is no deadline."""
