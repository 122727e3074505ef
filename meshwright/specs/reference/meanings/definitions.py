"""The kinds that a cluster is told of, and what it is told besides their fields.

Short names are those of the kinds' own projects. A rule is what the reader refuses and no schema can: what a
field must be to another one of its object (CEL, as Kubernetes has it). What one must be to the object's
namespace, or that a regular expression is one, only the reader says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from meshwright.mesh.config import SidecarSettings
from meshwright.mesh.kinds import (
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
    """What must hold of the value at a place such as `spec.rules[]`, which is `self`, else the message."""

    place: str
    holds: str
    message: str


@dataclass(frozen=True, slots=True)
class Column:
    """What `kubectl get` prints: the first of the paths whose field a version has."""

    name: str
    paths: tuple[str, ...]
    text: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True, slots=True)
class DefinitionFacts:
    """What a CustomResourceDefinition says of a kind besides its fields.

    `keys` are lists whose items must differ in a field, by place. `status` is whether what becomes of an
    object is written into it as conditions, `words` are fields of text in its place.
    """

    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    columns: tuple[Column, ...]
    rules: tuple[Rule, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    status: bool = False
    words: tuple[str, ...] = ()


AGE: Final = Column("Age", ("metadata.creationTimestamp",), "How long it has been there.", "date")
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
            Column("Account", ("spec.serviceAccount",), "Its identity."),
            Column("Address", ("spec.address",), "Where peers reach it."),
            Column("Accepted", ('status.conditions[?(@.type=="Accepted")].status',), "Whether it is read."),
            Column(
                "Programmed",
                ('status.conditions[?(@.type=="Programmed")].status',),
                "Whether proxies have what follows from it.",
            ),
            Column("Sidecar", ("spec.uuid",), "Its sidecar's UUID.", wide=True),
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
            Column(
                "Destination", ("spec.destination.name", "destination.name"), "The identity that is called."
            ),
            Column("Sources", ("spec.sources[*].name", "sources[*].name"), "The identities that may call."),
            Column("Rules", ("spec.rules[*].name", "specs[*].name"), "What may be called.", wide=True),
        ),
        rules=tuple(
            Rule(
                place, _NO_NAMED_MATCHES, "matches must be left out, because a TCPRoute has no named matches"
            )
            for place in ("spec.rules[]", "specs[]")
        ),
    ),
    HTTP_ROUTE_GROUP: DefinitionFacts(
        short_names=("htr",),
        categories=_SMI,
        columns=(Column("Matches", ("spec.matches[*].name", "matches[*].name"), "Their names."),),
        keys={"spec.matches": "name", "matches": "name"},
    ),
    TCP_ROUTE: DefinitionFacts(
        short_names=("tr",),
        categories=_SMI,
        columns=(Column("Ports", ("spec.matches.ports",), "The ports; none is every port."),),
    ),
    TRAFFIC_SPLIT: DefinitionFacts(
        short_names=("ts",),
        categories=_SMI,
        columns=(
            Column(SERVICE.name, ("spec.service",), "The service whose calls are split."),
            Column("Backends", ("spec.backends[*].service",), "To whom."),
        ),
        keys={"spec.backends": "service"},
    ),
    MESH_ROOT_CERTIFICATE: DefinitionFacts(
        short_names=("mrc",),
        categories=_OSM,
        words=("state",),
        columns=(
            Column("Role", ("spec.role", "spec.intent"), "Whether it signs."),
            Column("State", ("status.state",), "How far it has come."),
            Column("Secret", ("spec.provider.tresor.ca.secretRef.name",), "Where it is.", wide=True),
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
            Column("Source", ("spec.source.name",), "Who calls."),
            Column("Destinations", ("spec.destinations[*].name",), "Which services."),
            Column("On", ("spec.retryPolicy.retryOn",), "What is tried again."),
        ),
    ),
    ROUTE_POLICY: DefinitionFacts(
        short_names=("rp",),
        categories=(_OURS,),
        columns=(Column(SERVICE.name, ("spec.service",), "The service that is called."),),
    ),
    UPSTREAM_POLICY: DefinitionFacts(
        short_names=("up",),
        categories=(_OURS,),
        columns=(
            Column(SERVICE.name, ("spec.service",), "The service that answers."),
            Column("Balancing", ("spec.loadBalancing.policy",), "Which endpoint is chosen."),
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
        columns=(Column("Host", ("spec.host",), "Who is asked."),),
    ),
    MUTUAL_TLS: DefinitionFacts(
        short_names=("mtls",),
        categories=(_OURS,),
        columns=(Column("Mode", ("spec.mode",), "Whether some callers need no certificate."),),
    ),
    TELEMETRY: DefinitionFacts(
        short_names=("telemetry",),
        categories=_OSM,
        columns=(Column("Selector", ("spec.selector",), "Whose traffic.", wide=True),),
    ),
    EXTENSION_SERVICE: DefinitionFacts(
        short_names=("extsvc",),
        categories=_OSM,
        columns=(
            Column("Host", ("spec.host",), "Where it is."),
            Column("Port", ("spec.port",), "Its port."),
        ),
    ),
    UPSTREAM_TRAFFIC_SETTING: DefinitionFacts(
        short_names=("upstreamtrafficsetting",),
        categories=_OSM,
        columns=(Column("Host", ("spec.host",), "Whose calls are limited."),),
        keys={"spec.httpRoutes": "path"},
    ),
    EGRESS: DefinitionFacts(
        short_names=("egress",),
        categories=_OSM,
        columns=(
            Column("Sources", ("spec.sources[*].name",), "Whose calls."),
            Column("Hosts", ("spec.hosts",), "The hosts."),
            Column("Ports", ("spec.ports[*].number",), "The ports."),
            Column("Addresses", ("spec.ipAddresses",), "The ranges of addresses.", wide=True),
        ),
    ),
    MESH_CONFIG: DefinitionFacts(
        short_names=("meshconfig",),
        categories=(_OURS,),
        columns=(
            Column(
                "Permissive",
                ("spec.traffic.enablePermissiveTrafficPolicyMode",),
                "Whether everybody may call everybody.",
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
                    f"spec.certificate.{each}",
                    "duration(self) >= duration('1s') && duration(self) <= duration('87600h')",
                    LIFE_RULE,
                )
                for each in ("serviceCertValidityDuration", "ingressGateway.validityDuration")
            ),
        ),
    ),
    INGRESS_BACKEND: DefinitionFacts(
        short_names=("ingressbackend",),
        categories=(_OURS,),
        words=("currentStatus", "reason"),
        columns=(
            Column("Backends", ("spec.backends[*].name",), "The services that may be called."),
            Column("Sources", ("spec.sources[*].name",), "By whom."),
        ),
    ),
}
"""All kinds that are no part of Kubernetes and that are read, but for UDPRoute, which is refused."""
