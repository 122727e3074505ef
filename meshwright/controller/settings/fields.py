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

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, extra="forbid", frozen=True, use_attribute_docstrings=True
    )

    mesh: MaybePath = None
    """Directory of manifests; without, the mesh is what the other sources have."""
    kubernetes: bool = False
    """Read the mesh from a Kubernetes cluster, beside the directory or in its place."""
    kubeconfig: MaybePath = None
    """How the cluster is reached; without, as from a Pod of it, else by $KUBECONFIG or ~/.kube/config."""
    kube_context: str = ""
    """The context of that file; without, its current one."""
    namespaces: Namespaces = ()
    """Namespaces of the cluster whose objects are read; without, all of them."""
    namespace_selector: Selector = ""
    """Of these, the ones whose labels fit, such as openservicemesh.io/monitored-by=osm."""
    kubernetes_reports: bool = True
    """Write what became of the cluster's objects to the cluster: conditions and Events."""
    state: Path
    """Directory of CA, keys, ledger, socket."""
    shared_state: bool = False
    """Serve although others can read the state directory, or keys in it: where its modes are not ours."""
    key_passphrase_file: MaybePath = None
    """File with the passphrase by which the private keys in the state directory are encrypted; none: they are
    not."""
    authority_directory: MaybePath = None
    """Directory with the CA that signs for proxies and server: tls.crt, tls.key, ca.crt; none: its own."""
    authority_certificate: MaybePath = None
    """The same by files: the CA's certificate, and the intermediates above it."""
    authority_key: MaybePath = None
    """Its key."""
    authority_roots: MaybePath = None
    """The roots, if it is none itself."""
    root_secrets: MaybePath = None
    """Directory of the Secrets that MeshRootCertificates name, as NAMESPACE/NAME; others are made."""
    begin_anew: str = ""
    """The serial that a refusal to start names: begin without the CA or ledger that is lost."""
    rebuild_ledger: str = ""
    """The serial that a refusal to start names: let nobody in, and note what proxies show, to confirm it."""
    config: Path | None = None
    """YAML file with any of these settings."""
    ads_address: Listening = HostPort("::", 15128)
    """Where proxies dial in."""
    driver_addresses: Listenings = {}
    """Where sidecar drivers listen, such as document=127.0.0.1:15129; those named are started in any case."""
    http_address: Listening = HostPort("::", 9091)
    """Where health and metrics are asked for."""
    debug_address: Listening = HostPort("127.0.0.1", 9092)
    """Where the debug pages are."""
    debug_hosts: Hosts = ()
    """Further host names under which the debug pages may be asked for."""
    ads_hosts: Hosts = ()
    """Further DNS names and addresses in the ADS server's certificate."""
    trust_domain: Domain = "cluster.local"
    """The SPIFFE trust domain of all identities."""
    cluster_domain: Domain = "cluster.local"
    """The DNS domain of services, the last part of their names."""
    virtual_addresses: IPv4Network = IPv4Network("240.0.0.0/8")
    """Range for services without cluster IP."""
    virtual_addresses_ipv6: WithRoomForIpv4 = VIRTUAL_IPV6
    """Range for the same where IPv6 is captured: /96 or larger, the last 32 bits are those of IPv4."""
    log_level: LogLevel = LogLevel.INFO
    """The least severity that is written."""
    log_format: LogFormat = LogFormat.AUTO
    """`auto` is `console` on a terminal and `json` elsewhere."""
    quiet_seconds: Seconds = 0.1
    """A burst of changes ends when none came for so long."""
    longest_seconds: Seconds = 1.0
    """No change waits longer than this for its wave."""
    endpoint_quiet_seconds: Seconds = 0.1
    """The same as quiet_seconds, for changes of workloads and endpoints alone."""
    endpoint_longest_seconds: Seconds = 1.0
    """The same as longest_seconds, for changes of workloads and endpoints alone."""
    lingering_seconds: Annotated[float, Field(ge=0, le=86400)] = 300.0
    """What a proxy is served is kept current for so long after its last stream; 0 is not at all."""
    held_seconds: Seconds = 60.0
    """A stream whose workload is not known, or not any more, is ended after so long."""
    recheck_seconds: Seconds = 30.0
    """How often the certificate of an open stream is looked at again."""
    drain_seconds: Annotated[float, Field(ge=0, le=3600)] = 5.0
    """How long streams may take to end when the server stops."""
    heartbeat_seconds: Seconds = 10.0
    """Liveness fails when the event loop was held for so long."""
    streams_per_certificate: Annotated[int, Field(ge=1, le=1000)] = 8
    """Calls of every kind at once: discovery, client status, health."""
    types_per_certificate: Annotated[int, Field(ge=5, le=10_000)] = 64
    """Types that one certificate asks for, on all its streams."""
    names_per_certificate: Annotated[int, Field(ge=1, le=10_000_000)] = 100_000
    """Resource names that one certificate subscribes to or says it holds, on all its streams."""
    bytes_per_certificate: Annotated[int, Field(ge=2**20, le=2**34)] = 20 * 1024 * 1024
    """What is kept of what a proxy sends, on all its streams: names, versions, its node."""
    loop_share: Annotated[float, Field(gt=0, le=1)] = 0.2
    """The part of the event loop's time that one proxy's requests may take in the long run."""
    loop_burst_seconds: Annotated[float, Field(gt=0, le=60)] = 0.05
    """How much of it may be taken at once, after a rest."""
    max_streams: Annotated[int, Field(ge=1, le=1_000_000)] = 20_000
    """Streams of all proxies together."""
    streams_per_second: Annotated[float, Field(gt=0, le=1_000_000)] = 1000.0
    """New streams beyond this wait for their turn, `admission_seconds` at the most."""
    admission_seconds: Seconds = 10.0
    """A new stream that had no turn after so long is refused."""
    max_connections: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Connections to a driver's server; without, as many as there are file descriptors for."""
    idle_connections: Annotated[int, Field(ge=16, le=1_000_000)] = 4000
    """Connections that carry no call, those in their handshake included; the oldest beyond these end.
    A fourth of them may be connections on which nothing was ever received."""
    idle_connection_seconds: Seconds = 60.0
    """A connection that has carried no call for so long ends."""
    handshake_seconds: Seconds = 5.0
    """A connection whose TLS and HTTP/2 handshake takes longer ends."""
    calls_at_once: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """Calls that may be begun with one certificate, whatever becomes of them; beyond, connections end."""
    calls_per_second: Annotated[float, Field(gt=0, le=1_000_000)] = 10.0
    """How fast calls that were begun are forgotten."""
    received_bytes_per_second: Annotated[float, Field(ge=1024, le=2**30)] = 1024 * 1024
    """What a connection may send for long; beyond it, and eight `request_bytes` at once, it ends."""
    stream_age_seconds: Seconds = 1800.0
    """A stream ends in order after so long, ten percent more or less; its proxy comes back."""
    write_seconds: Seconds = 20.0
    """A proxy that does not read for so long loses its stream."""
    warming_seconds: Seconds = 16.0
    """How long listeners and routes wait for clusters to be warm; Envoy's own limit is 15."""
    request_bytes: Annotated[int, Field(ge=65_536, le=2**30)] = 4 * 1024 * 1024
    """The longest request."""
    node_bytes: Annotated[int, Field(ge=1024, le=2**24)] = 256 * 1024
    """The longest node in a request, or any other field of a long one."""
    name_characters: Annotated[int, Field(ge=64, le=65_536)] = 4096
    """The longest resource name."""
    type_url_characters: Annotated[int, Field(ge=128, le=65_536)] = 512
    """The longest type."""
    client_status_bytes: Annotated[int, Field(ge=65_536, le=2**30)] = 4 * 1024 * 1024
    """The longest description of its own streams that a proxy is given."""
    endpoint_admission: EndpointAdmission = EndpointAdmission.READY
    """What a sidecar must have done once before its workload gets traffic: off, identity or ready."""
    headers_per_message: Annotated[int, Field(ge=1, le=10_000)] = HeaderLimits().count
    """A request with more headers is answered 431, a response with more becomes a 502."""
    header_kibibytes: Annotated[int, Field(ge=1, le=8192)] = HeaderLimits().kibibytes
    """The same for the size of all headers of a request or response together."""
    denial_reasons: DenialReasons = DenialReasons.CALLERS
    """To whom sidecars say why they have denied a request: callers (of the mesh, in a header; and the access
    log), log or off."""
    method_override_headers: MethodOverrides = MethodOverrides.KEEP
    """Whether headers by which some applications take another method than the request's, such as
    X-HTTP-Method-Override, reach applications: keep or remove."""
    trace_sampling: Annotated[float, Field(ge=0, le=100)] = 100.0
    """How many of a hundred requests are traced, where the MeshConfig has a collector of spans."""
    trace_collector: MaybeListening = None
    """Where the control plane's own spans go, by OTLP over gRPC, such as otel-collector:4317; without, it
    makes none (docs/debugging.md)."""
    trace_collector_tls: bool = False
    """Ask it by TLS."""
    trace_collector_ca: MaybePath = None
    """File with the CAs that are trusted there; without, those that gRPC brings. For trace_collector_tls."""
    connect_seconds: Annotated[float, Field(ge=0.1, le=60)] = 2.0
    """A connection from sidecar to sidecar is there after so long, TLS included, or has failed."""
    connect_retries: Annotated[int, Field(ge=0, le=10)] = 2
    """How often sidecars try a request again that has reached no application, elsewhere if they can; and a
    connection that nobody has taken. 0: never."""
    ejecting_failures: Annotated[int, Field(ge=0, le=1000)] = 5
    """A sidecar leaves an endpoint alone after so many failures in a row: no connection, or 502, 503, 504.
    0: never."""
    ejecting_server_errors: Annotated[int, Field(ge=0, le=1000)] = 0
    """The same for answers of 500 and more, whatever the application means by them; 0: they do not count."""
    ejected_seconds: Annotated[float, Field(ge=1, le=300)] = 10.0
    """How long it is left alone the first time; every further time so much longer, 300 at the most."""
    ejected_percent: Annotated[int, Field(ge=1, le=100)] = 50
    """Of a service's endpoints no more than these are left alone at once: one that is alone never is."""
    peer_silence_seconds: Annotated[int, Field(ge=0, le=3600)] = 10
    """A connection to a sidecar whose machine confirms nothing for so long ends; at least 4. 0: it may
    wait for a quarter of an hour."""
    connection_reuse_seconds: Annotated[int, Field(ge=0, le=3600)] = 1
    """How long an idle HTTP connection to an application, or to a host outside the mesh, is kept. It must be
    less than the application's own keep-alive time, or some requests are answered 503. 0: Envoy's hour."""
    tcp_idle_seconds: Annotated[int, Field(ge=0, le=31_536_000)] = 604_800
    """A TCP connection on which neither side sends a byte for so long ends, at each sidecar on its way;
    probes of TCP's keep-alive are no bytes. 0: never (docs/envoy-defaults.md)."""
    http_upgrades: Upgrades = ("websocket",)
    """Values of the header Upgrade with which a request may become another protocol, in whatever case. All
    others are ignored: the application does not see them."""
    dead_after_seconds: Annotated[float, Field(ge=0, le=86400)] = 60.0
    """A sidecar whose stream has been gone for longer, and which callers have ejected, is shown as dead."""
    empty_answer_hold_seconds: Annotated[float, Field(ge=0, le=86400)] = 30.0
    """A source that suddenly says nothing is believed after so long; 0 is at once."""
    providers: Providers = {}
    """Sources of others that are installed, with their options, as docs/providers.md has them."""
    dns_nameservers: Nameservers = ()
    """IP addresses, with or without ports, that resolve services' DNS names; the system's without."""
    dns_floor_seconds: Seconds = 5.0
    """A DNS name is asked for again no sooner than this, whatever its TTL says."""
    dns_ceiling_seconds: Seconds = 300.0
    """A DNS name is asked for again at the latest after this, whatever its TTL says."""
    dns_timeout_seconds: Seconds = 5.0
    """A question that has no answer after this, over all nameservers, has failed."""
    webhook_address: MaybeListening = None
    """Where API servers ask the validating webhook, by HTTPS; without, there is none."""
    webhook_reached_at: WebhookPlace = None
    """Where they reach it: NAMESPACE/SERVICE or NAMESPACE/SERVICE:PORT in the cluster, or https://HOST:PORT."""
    webhook_register: bool = True
    """The cluster is told of the webhook; without, `meshwright webhook` prints what it is to be told."""
    injection: bool = False
    """Put sidecars into pods as they are made, at webhook_address too: docs/injection.md."""
    injection_config: MaybePath = None
    """File with what is injected, as docs/injection.md has it; read again as it changes."""
    injection_config_map: MaybeConfigMap = None
    """In place of a file: the ConfigMap that has it, NAMESPACE/NAME or NAMESPACE/NAME/KEY (config.yaml). It
    is watched."""
    revision: MaybeRevision = ""
    """Which of several control planes this is, by the label meshwright.dev/revision; empty: the default."""
    enrolment_address: MaybeListening = None
    """Where machines that have no certificate yet join; without, none can."""
    renewal_address: MaybeListening = None
    """Where machines renew the certificates of their proxies, and learn whom to trust; without, none can."""
    enrolment_proofs: Proofs = ("join-token",)
    """What is accepted of who joins: join-token, kubernetes, or the name of a proof that is installed."""
    roots_config_map: MaybeName = "meshwright-roots"
    """The ConfigMap that each namespace with sidecars is given, with the roots by which its pods believe the
    control plane when they join; empty: somebody else makes it. For enrolment_proofs kubernetes."""
    trust_seconds: Annotated[int, Field(ge=1, le=86400)] = 600
    """How often machines ask whom to trust; every 5 seconds while the root changes."""
    verify: bool = False
    """After every change, compute everything from nothing and compare: for tests, and for those in doubt."""
    issuer: IssuerKind = IssuerKind.BUILT_IN
    """Who signs service certificates: the server's own CA, one in files, the PKI of a Vault or OpenBao, or an
    issuer of cert-manager."""
    ca_directory: MaybePath = None
    """Directory with tls.crt, tls.key and ca.crt of the CA, as a Secret is mounted; watched."""
    ca_certificate: MaybePath = None
    """In place of a directory: file with the CA's certificate, and the intermediates above it."""
    ca_key: MaybePath = None
    """File with its key."""
    ca_roots: MaybePath = None
    """File with the roots, where the CA is an intermediate."""
    vault_address: VaultUrl = ""
    """Where the Vault is, such as https://vault.example:8200."""
    vault_ca: MaybePath = None
    """File with the CAs that are trusted there; without, the system's own."""
    vault_namespace: VaultNamespace = ""
    """The Vault's namespace, if it has any."""
    vault_mount: str = "pki"
    """Where its PKI is mounted."""
    vault_role: str = ""
    """The role that signs."""
    vault_roots: MaybePath = None
    """File with the PKI's roots, where its chain has none."""
    vault_token_file: MaybePath = None
    """Log in with the token in this file."""
    vault_approle_file: MaybePath = None
    """Log in with the role_id and secret_id in this file, each on its line."""
    vault_kubernetes_role: str = ""
    """Log in with this role and the token of the Pod's ServiceAccount."""
    vault_kubernetes_token_file: MaybePath = None
    """Another token than the one that every Pod has."""
    vault_auth_mount: str = ""
    """Where the AppRole or Kubernetes login is mounted, if not at its usual place."""
    cert_manager_issuer: MaybeIssuer = None
    """The issuer that signs: Issuer/NAME, ClusterIssuer/NAME, or KIND.GROUP/NAME of others. The cluster is
    that of kubeconfig and kube_context, or of the server's Pod."""
    cert_manager_namespace: OneNamespace = ""
    """Where CertificateRequests are made, for an Issuer its own namespace; without, the control plane's."""
    cert_manager_roots: MaybePath = None
    """File with the issuer's roots; without, those that it shows with what it signs."""
    cert_manager_seconds: Seconds = 60.0
    """How long a CertificateRequest may take until it is signed."""
    service_certificate_key: KeyKind = KeyKind.ECDSA_P256
    """The kind of key that service certificates are issued for; others stay until they are due."""
    certificate_backdate: Annotated[float, Field(ge=0, le=300)] = BACKDATED.total_seconds()
    """A service certificate is valid from so long before it is issued, at most a tenth of its life."""
    proxy_certificate_days: Annotated[int, Field(ge=1, le=MOST_DAYS)] = VALIDITY.days
    """Validity of proxy certificates for which none is asked."""
    proxy_claim_days: Annotated[int, Field(ge=1, le=MOST_DAYS)] | None = None
    """A proxy certificate that was not used for the first time by then is refused; none: no deadline."""
