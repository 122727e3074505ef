"""Facts of CustomResourceDefinitions besides the fields: short names, columns and rules.

Short names are from the kinds' own projects. A rule (CEL) expresses a refusal of the reader that a schema
cannot express: a relation between two fields of one object. Only the reader can check relations to the
object's namespace, and regular expressions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from meshwright.mesh.config import SidecarSettings
from meshwright.mesh.kinds import (
    CLIENT_TRAFFIC_POLICY,
    EGRESS,
    EXTENSION_SERVICE,
    EXTERNAL_AUTHORIZATION,
    HTTP_ROUTE_GROUP,
    INGRESS_BACKEND,
    MESH_CONFIG,
    MESH_ROOT_CERTIFICATE,
    MUTUAL_TLS,
    RETRY,
    ROUTE_POLICY,
    SECRET,
    SERVICE,
    TCP_ROUTE,
    TELEMETRY,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
    UPSTREAM_POLICY,
    UPSTREAM_TRAFFIC_SETTING,
    WORKLOAD,
    Kind,
)
from meshwright.specs.policy.health_check import CHECK_RULE
from meshwright.specs.policy.upstream_policy import HASH_RULE, NO_HASH
from meshwright.specs.values.durations import LIFE_RULE


@dataclass(frozen=True, slots=True)
class Rule:
    """Condition (CEL) for the value (`self`) at a place such as `spec.rules[]`, with its error message."""

    place: str
    holds: str
    message: str


@dataclass(frozen=True, slots=True)
class Column:
    """Column of `kubectl get` for a kind: shows the first path that exists in a version."""

    name: str
    paths: tuple[str, ...]
    text: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True, slots=True)
class DefinitionFacts:
    """Facts of a CustomResourceDefinition besides the fields.

    `keys` are lists by place, with the field that must differ between items. `status` is True if the status
    has conditions, and `words` are text fields in its place.
    """

    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    columns: tuple[Column, ...]
    rules: tuple[Rule, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    status: bool = False
    words: tuple[str, ...] = ()


AGE: Final = Column("Age", ("metadata.creationTimestamp",), "The age of the object.", "date")
_OURS: Final = "meshwright"
_SMI: Final = (_OURS, "smi")
_OSM: Final = (_OURS, "osm")

_NO_NAMED_MATCHES: Final = "self.kind != 'TCPRoute' || !has(self.matches) || size(self.matches) == 0"
_DEFAULT: Final = SidecarSettings()


def _tls(name: str, default: str) -> str:
    return f"(has(self.{name}) && !(self.{name} in ['', 'TLS_AUTO']) ? self.{name} : '{default}')"


INSTALLED: Final[Mapping[Kind, DefinitionFacts]] = {
    WORKLOAD: DefinitionFacts(
        short_names=("wl",),
        categories=(_OURS,),
        columns=(
            Column("Account", ("spec.serviceAccount",), "The identity."),
            Column("Address", ("spec.address",), "The address for other workloads."),
            Column(
                "Accepted",
                ('status.conditions[?(@.type=="Accepted")].status',),
                "Whether the object is valid.",
            ),
            Column(
                "Programmed",
                ('status.conditions[?(@.type=="Programmed")].status',),
                "Whether proxies have accepted the resulting configuration.",
            ),
            Column("Sidecar", ("spec.uuid",), "The UUID of the sidecar.", wide=True),
        ),
        rules=(
            Rule(
                "spec",
                "!has(self.interception) || !has(self.applicationAddress) && "
                "(!has(self.upstreams) || size(self.upstreams) == 0)",
                "interception is only for transparent interception; remove it, "
                "or remove upstreams and applicationAddress, which select explicit interception",
            ),
            Rule(
                "spec",
                "!has(self.applicationAddress) || self.applicationAddress != self.address",
                "applicationAddress must differ from address, "
                "because the sidecar listens on the same ports there",
            ),
        ),
        status=True,
    ),
    TRAFFIC_TARGET: DefinitionFacts(
        short_names=("tt",),
        categories=_SMI,
        columns=(
            Column("Destination", ("spec.destination.name", "destination.name"), "The called identity."),
            Column("Sources", ("spec.sources[*].name", "sources[*].name"), "The allowed clients."),
            Column("Rules", ("spec.rules[*].name", "specs[*].name"), "The allowed routes.", wide=True),
        ),
        rules=tuple(
            Rule(
                place,
                _NO_NAMED_MATCHES,
                "matches must be left out, because a TCPRoute does not have named matches",
            )
            for place in ("spec.rules[]", "specs[]")
        ),
    ),
    HTTP_ROUTE_GROUP: DefinitionFacts(
        short_names=("htr",),
        categories=_SMI,
        columns=(
            Column("Matches", ("spec.matches[*].name", "matches[*].name"), "The names of the matches."),
        ),
        keys={"spec.matches": "name", "matches": "name"},
    ),
    TCP_ROUTE: DefinitionFacts(
        short_names=("tr",),
        categories=_SMI,
        columns=(Column("Ports", ("spec.matches.ports",), "The ports; an empty list means every port."),),
    ),
    TRAFFIC_SPLIT: DefinitionFacts(
        short_names=("ts",),
        categories=_SMI,
        columns=(
            Column(SERVICE.name, ("spec.service",), "The service with the requests to split."),
            Column("Backends", ("spec.backends[*].service",), "The services that receive the requests."),
        ),
        keys={"spec.backends": "service"},
    ),
    MESH_ROOT_CERTIFICATE: DefinitionFacts(
        short_names=("mrc",),
        categories=_OSM,
        words=("state",),
        columns=(
            Column("Role", ("spec.role", "spec.intent"), "Whether the root signs."),
            Column("State", ("status.state",), "The progress of the root."),
            Column(
                SECRET.name, ("spec.provider.tresor.ca.secretRef.name",), "The name of the Secret.", wide=True
            ),
        ),
        rules=(
            Rule(
                "spec",
                "!has(self.role) || !has(self.intent) || self.intent == self.role",
                "intent is the older name of role; both must have the same value",
            ),
        ),
    ),
    RETRY: DefinitionFacts(
        short_names=("retry",),
        categories=_OSM,
        columns=(
            Column("Source", ("spec.source.name",), "The client."),
            Column("Destinations", ("spec.destinations[*].name",), "The called services."),
            Column("On", ("spec.retryPolicy.retryOn",), "The conditions for a retry."),
        ),
    ),
    ROUTE_POLICY: DefinitionFacts(
        short_names=("rp",),
        categories=(_OURS,),
        columns=(Column(SERVICE.name, ("spec.service",), "The called service."),),
    ),
    UPSTREAM_POLICY: DefinitionFacts(
        short_names=("up",),
        categories=(_OURS,),
        columns=(
            Column(SERVICE.name, ("spec.service",), "The called service."),
            Column("Balancing", ("spec.loadBalancing.policy",), "The load balancing algorithm."),
        ),
        rules=(
            Rule(
                "spec.healthCheck",
                "[has(self.http), has(self.grpc), has(self.tcp)].filter(e, e).size() == 1",
                CHECK_RULE,
            ),
            Rule(
                "spec.loadBalancing",
                "!has(self.policy) || self.policy != 'ConsistentHash' || has(self.hash)",
                NO_HASH,
            ),
            Rule(
                "spec.loadBalancing.hash",
                "[has(self.header), has(self.cookie), has(self.query)].filter(e, e).size() == 1",
                HASH_RULE,
            ),
        ),
    ),
    EXTERNAL_AUTHORIZATION: DefinitionFacts(
        short_names=("extauthz",),
        categories=(_OURS,),
        columns=(Column("Host", ("spec.host",), "The external authorizer."),),
    ),
    MUTUAL_TLS: DefinitionFacts(
        short_names=("mtls",),
        categories=(_OURS,),
        columns=(Column("Mode", ("spec.mode",), "Whether some clients may call without a certificate."),),
    ),
    CLIENT_TRAFFIC_POLICY: DefinitionFacts(
        short_names=("ctp",),
        categories=(_OURS,),
        columns=(
            Column("Gateways", ("spec.targetRefs[*].name",), "The Gateways."),
            Column(
                "Accepted",
                ('status.conditions[?(@.type=="Accepted")].status',),
                "Whether the object is valid.",
            ),
            Column(
                "Conflicted",
                ('status.conditions[?(@.type=="Conflicted")].status',),
                "Whether another policy has precedence.",
            ),
        ),
        status=True,
    ),
    TELEMETRY: DefinitionFacts(
        short_names=("telemetry",),
        categories=_OSM,
        columns=(Column("Selector", ("spec.selector",), "The labels of the workloads.", wide=True),),
    ),
    EXTENSION_SERVICE: DefinitionFacts(
        short_names=("extsvc",),
        categories=_OSM,
        columns=(
            Column("Host", ("spec.host",), "The DNS name or IP address."),
            Column("Port", ("spec.port",), "The port."),
        ),
    ),
    UPSTREAM_TRAFFIC_SETTING: DefinitionFacts(
        short_names=("upstreamtrafficsetting",),
        categories=_OSM,
        columns=(Column("Host", ("spec.host",), "The limited host."),),
        keys={"spec.httpRoutes": "path"},
    ),
    EGRESS: DefinitionFacts(
        short_names=("egress",),
        categories=_OSM,
        columns=(
            Column("Sources", ("spec.sources[*].name",), "The clients."),
            Column("Hosts", ("spec.hosts",), "The hosts."),
            Column("Ports", ("spec.ports[*].number",), "The ports."),
            Column("Addresses", ("spec.ipAddresses",), "The IP ranges.", wide=True),
        ),
    ),
    MESH_CONFIG: DefinitionFacts(
        short_names=("meshconfig",),
        categories=(_OURS,),
        columns=(
            Column(
                "Permissive",
                ("spec.traffic.enablePermissiveTrafficPolicyMode",),
                "Whether all clients may call all services.",
                "boolean",
            ),
            Column(
                EGRESS.name, ("spec.traffic.enableEgress",), "Whether traffic may leave the mesh.", "boolean"
            ),
        ),
        rules=(
            Rule(
                "spec.sidecar",
                f"{_tls('tlsMinProtocolVersion', _DEFAULT.tls_min_version)} <= "
                f"{_tls('tlsMaxProtocolVersion', _DEFAULT.tls_max_version)}",
                "tlsMinProtocolVersion must not be higher than tlsMaxProtocolVersion",
            ),
            *(
                Rule(
                    f"spec.certificate.{item}",
                    "duration(self) >= duration('1s') && duration(self) <= duration('87600h')",
                    LIFE_RULE,
                )
                for item in ("serviceCertValidityDuration", "ingressGateway.validityDuration")
            ),
        ),
    ),
    INGRESS_BACKEND: DefinitionFacts(
        short_names=("ingressbackend",),
        categories=(_OURS,),
        words=("currentStatus", "reason"),
        columns=(
            Column("Backends", ("spec.backends[*].name",), "The called services."),
            Column("Sources", ("spec.sources[*].name",), "The allowed clients."),
        ),
    ),
}
"""All kinds with a reader, except Kubernetes' own and UDPRoute, which is refused."""
