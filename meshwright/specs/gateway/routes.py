"""HTTPRoute v1 and v1beta1, GRPCRoute v1, TLSRoute v1, v1alpha3 and v1alpha2, TCPRoute v1 and v1alpha2."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.gateway.routes import GatewayRoute, GRPCRoute, HTTPRoute, TCPRoute, TLSRoute
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.names import Namespace
from meshwright.mesh.origins import InCluster
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.tally import Tally
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.gateway.forms import HOSTNAME, generation_of, is_ip_address, limited, limited_texts
from meshwright.specs.gateway.matches import DEFAULT_MATCHES
from meshwright.specs.gateway.references import parents_of
from meshwright.specs.gateway.rules import connection_rule, grpc_rule, http_rule
from meshwright.specs.manifest import Manifest
from meshwright.specs.notes import Notes

R = TypeVar("R", bound=GatewayRoute)
RuleReader = Callable[[Fields, Namespace], Rule]

_MOST_RULES: Final = 16
_MOST_MATCHES: Final = 128
_MOST_HOSTNAMES: Final = 16
_MOST_SERVER_NAMES: Final = 1024
_LATE_VERSIONS: Final = ("v1", "v1alpha3")
"""Versions of TLSRoute in which hostnames are required."""

_NO_DEFAULT_GATEWAYS: Final = "is experimental and not supported; name the parents in parentRefs"
_UNKNOWN: Final = "unknown field; the field is ignored"


@dataclass(frozen=True, slots=True)
class _Spec:
    """The `spec` of a route during reading, with its parents."""

    manifest: Manifest
    fields: Fields
    parents: tuple[ParentRef, ...]

    @property
    def notes(self) -> Notes:
        return self.manifest.notes

    @property
    def is_in_cluster(self) -> bool:
        return isinstance(self.notes.origin, InCluster)

    @property
    def is_of_mesh(self) -> bool:
        return any(parent.kind == SERVICE for parent in self.parents)


def http_route(manifest: Manifest) -> HTTPRoute:
    """Read an HTTPRoute; without rules it has one rule without backends for all requests."""
    spec = _spec(manifest)
    hostnames, rules = _hostnames(spec.fields), _rules(spec, http_rule, least=1)
    # The default of the CRD, where requests are answered with 500.
    rules = rules if spec.fields.has("rules") else (Rule(DEFAULT_MATCHES),)
    return _route(HTTPRoute, spec, hostnames, rules)


def grpc_route(manifest: Manifest) -> GRPCRoute:
    """Read a GRPCRoute."""
    spec = _spec(manifest)
    return _route(GRPCRoute, spec, _hostnames(spec.fields), _rules(spec, grpc_rule))


def tls_route(manifest: Manifest) -> TLSRoute:
    """Read a TLSRoute; only v1alpha2 has more than one rule, and may lack hostnames."""
    spec = _spec(manifest)
    # A cluster also shows older objects in the newer versions, without conversion.
    late = manifest.version in _LATE_VERSIONS and not spec.is_in_cluster
    hostnames = limited_texts(spec.fields, "hostnames", HOSTNAME, _MOST_SERVER_NAMES, 1 if late else 0)
    for index, name in enumerate(hostnames):
        if late and is_ip_address(name):
            place = f"{spec.fields.at('hostnames')}[{index}]"
            spec.notes.refuse(Code.WRONG_VALUE, place, "must be a DNS name, not an IP address", name)
    return _route(TLSRoute, spec, hostnames, _connection_rules(spec))


def tcp_route(manifest: Manifest) -> TCPRoute:
    """Read a TCPRoute of the Gateway API; only v1alpha2 has more than one rule."""
    spec = _spec(manifest)
    return _route(TCPRoute, spec, (), _connection_rules(spec))


def _spec(manifest: Manifest) -> _Spec:
    fields = manifest.spec()
    return _Spec(manifest, fields, parents_of(fields))


def _route(form: type[R], spec: _Spec, hostnames: tuple[str, ...], rules: tuple[Rule, ...]) -> R:
    fields, manifest = spec.fields, spec.manifest
    if fields.has("useDefaultGateways"):
        fields.warn("useDefaultGateways", _NO_DEFAULT_GATEWAYS, Code.FIELDS_NOT_USED)
    fields.accept("useDefaultGateways")
    _close(spec)
    return form(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        parents=spec.parents,
        hostnames=hostnames,
        rules=rules,
        generation=generation_of(manifest.metadata),
        created=manifest.metadata.text("creationTimestamp") or "",
    )


def _rules(spec: _Spec, read: RuleReader, *, least: int = 0, most: int = _MOST_RULES) -> tuple[Rule, ...]:
    """Read `rules`, each by itself."""
    fields = spec.fields
    sections = limited(fields, "rules", most, least if fields.has("rules") else 0)
    rules = tuple(_rule(spec, section, read) for section in sections)
    # A rule of an HTTPRoute without matches has one by default.
    absent = 1 if read is http_rule else 0
    number = sum(_match_count(section, absent) for section in sections)
    if number > _MOST_MATCHES:
        fields.wrong("rules", f"must have at most {_MOST_MATCHES} matches in all rules together")
    named = [(section, rule.name) for section, rule in zip(sections, rules, strict=True) if rule.name]
    for index in duplicates([name for _, name in named]):
        place = named[index][0].at("name")
        spec.notes.refuse(Code.DUPLICATE, place, "must differ from the names before", named[index][1])
    return rules


def _connection_rules(spec: _Spec) -> tuple[Rule, ...]:
    most = _MOST_RULES if spec.manifest.version == "v1alpha2" or spec.is_in_cluster else 1
    if not spec.fields.has("rules"):
        limited(spec.fields, "rules", most, least=1)
    return _rules(spec, connection_rule, least=1, most=most)


def _rule(spec: _Spec, fields: Fields, read: RuleReader) -> Rule:
    """Read one rule. An error refuses a manifest from a file, and drops a rule that a cluster has accepted.

    A cluster's CRDs can be older or newer than these readers, so they can accept a rule with an error here.
    The rules of a cluster's routes for gateways alone are the business of another controller, so their
    problems are not reported.
    """
    notes = fields.notes = spec.notes.part()
    if spec.is_in_cluster and not spec.is_of_mesh:
        notes.problems, notes.tally = [], Tally()
    rule = read(fields, spec.manifest.namespace)
    fields.close()
    spec.notes.is_clean &= notes.is_clean
    spec.notes.refused |= notes.refused and not spec.is_in_cluster
    return replace(Rule(name=rule.name), dropped=notes.fault) if notes.fault else rule


def _match_count(rule: Fields, absent: int) -> int:
    if "matches" not in rule.keys_read():
        return 0
    matches = rule.raw("matches")
    return absent if matches is None else len(matches) if isinstance(matches, list) else 0


def _hostnames(spec: Fields) -> tuple[str, ...]:
    return limited_texts(spec, "hostnames", HOSTNAME, _MOST_HOSTNAMES)


def _close(spec: _Spec) -> None:
    """Refuse unknown fields of `spec` from a file; from a cluster they may be of newer CRDs."""
    if spec.is_in_cluster:
        for name in spec.fields.unasked():
            spec.fields.warn(name, _UNKNOWN, Code.FIELDS_NOT_USED)
    else:
        spec.fields.close()
