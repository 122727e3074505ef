"""HTTPRoute v1 and v1beta1, GRPCRoute v1, TLSRoute v1, v1alpha3 and v1alpha2, TCPRoute v1 and v1alpha2."""

import ipaddress
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.gateway.routes import GatewayRoute, GRPCRoute, HTTPRoute, TCPRoute, TLSRoute
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.names import Namespace
from meshwright.mesh.origins import InCluster
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.gateway.forms import HOSTNAME, generation_of, limited, limited_texts
from meshwright.specs.gateway.matches import DEFAULT_MATCHES
from meshwright.specs.gateway.references import parents_of
from meshwright.specs.gateway.rules import connection_rule, grpc_rule, http_rule
from meshwright.specs.manifest import Manifest

R = TypeVar("R", bound=GatewayRoute)
RuleReader = Callable[[Fields, Namespace], Rule]

_MOST_RULES: Final = 16
_MOST_MATCHES: Final = 128
_MOST_HOSTNAMES: Final = 16
_MOST_SERVER_NAMES: Final = 1024
_LATE_VERSIONS: Final = ("v1", "v1alpha3")
"""Versions of TLSRoute in which hostnames are required."""

_IN_A_MESH: Final = (
    "has no effect on requests to a Service; select requests by their host with a match of the header Host"
)
_NO_DEFAULT_GATEWAYS: Final = "is experimental and not supported; name the parents in parentRefs"
_UNKNOWN: Final = "unknown field; the field is ignored"


def http_route(manifest: Manifest) -> HTTPRoute:
    """Read an HTTPRoute; without rules it has one rule without backends for all requests."""
    spec = manifest.spec()
    parents, hostnames = parents_of(spec), _hostnames(spec)
    rules = _rules(manifest, spec, http_rule, least=1)
    # The default of the CRD, where requests are answered with 500.
    rules = rules if spec.has("rules") else (Rule(DEFAULT_MATCHES),)
    return _route(HTTPRoute, manifest, spec, parents, hostnames, rules)


def grpc_route(manifest: Manifest) -> GRPCRoute:
    """Read a GRPCRoute."""
    spec = manifest.spec()
    parents, hostnames = parents_of(spec), _hostnames(spec)
    return _route(GRPCRoute, manifest, spec, parents, hostnames, _rules(manifest, spec, grpc_rule))


def tls_route(manifest: Manifest) -> TLSRoute:
    """Read a TLSRoute; only v1alpha2 has more than one rule, and may lack hostnames."""
    spec = manifest.spec()
    parents = parents_of(spec)
    late = manifest.version in _LATE_VERSIONS
    hostnames = limited_texts(spec, "hostnames", HOSTNAME, _MOST_SERVER_NAMES, 1 if late else 0)
    for index, name in enumerate(hostnames):
        if late and _is_address(name):
            place = f"{spec.at('hostnames')}[{index}]"
            manifest.notes.refuse(Code.WRONG_VALUE, place, "must be a DNS name, not an IP address", name)
    return _route(TLSRoute, manifest, spec, parents, hostnames, _connection_rules(manifest, spec))


def tcp_route(manifest: Manifest) -> TCPRoute:
    """Read a TCPRoute of the Gateway API; only v1alpha2 has more than one rule."""
    spec = manifest.spec()
    return _route(TCPRoute, manifest, spec, parents_of(spec), (), _connection_rules(manifest, spec))


def _route(
    form: type[R],
    manifest: Manifest,
    spec: Fields,
    parents: tuple[ParentRef, ...],
    hostnames: tuple[str, ...],
    rules: tuple[Rule, ...],
) -> R:
    if hostnames and form is not TLSRoute and any(parent.kind == SERVICE for parent in parents):
        spec.warn("hostnames", _IN_A_MESH, Code.FIELDS_NOT_USED)
    if spec.has("useDefaultGateways"):
        spec.warn("useDefaultGateways", _NO_DEFAULT_GATEWAYS, Code.FIELDS_NOT_USED)
    spec.accept("useDefaultGateways")
    _close(manifest, spec)
    return form(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        parents=parents,
        hostnames=hostnames,
        rules=rules,
        generation=generation_of(manifest.metadata),
        created=manifest.metadata.text("creationTimestamp") or "",
    )


def _rules(
    manifest: Manifest, spec: Fields, read: RuleReader, *, least: int = 0, most: int = _MOST_RULES
) -> tuple[Rule, ...]:
    """Read `rules`, each by itself."""
    sections = limited(spec, "rules", most, least if spec.has("rules") else 0)
    rules = tuple(_rule(manifest, section, read) for section in sections)
    # A rule of an HTTPRoute without matches has one by default.
    absent = 1 if read is http_rule else 0
    number = sum(_match_count(section, absent) for section in sections)
    if number > _MOST_MATCHES:
        spec.wrong("rules", f"must have at most {_MOST_MATCHES} matches in all rules together")
    named = [(section, rule.name) for section, rule in zip(sections, rules, strict=True) if rule.name]
    for index in duplicates([name for _, name in named]):
        place = named[index][0].at("name")
        manifest.notes.refuse(Code.DUPLICATE, place, "must differ from the names before", named[index][1])
    return rules


def _connection_rules(manifest: Manifest, spec: Fields) -> tuple[Rule, ...]:
    most = _MOST_RULES if manifest.version == "v1alpha2" else 1
    if not spec.has("rules"):
        limited(spec, "rules", most, least=1)
    return _rules(manifest, spec, connection_rule, least=1, most=most)


def _rule(manifest: Manifest, fields: Fields, read: RuleReader) -> Rule:
    """Read one rule. An error refuses a manifest from a file, and drops a rule that a cluster has accepted.

    A cluster's CRDs can be older or newer than these readers, so they can accept a rule with an error here.
    """
    notes = fields.notes = manifest.notes.part()
    rule = read(fields, manifest.namespace)
    fields.close()
    manifest.notes.is_clean &= notes.is_clean
    manifest.notes.refused |= notes.refused and not _in_cluster(manifest)
    return replace(Rule(name=rule.name), dropped=notes.fault) if notes.fault else rule


def _match_count(rule: Fields, absent: int) -> int:
    if "matches" not in rule.keys_read():
        return 0
    matches = rule.raw("matches")
    return absent if matches is None else len(matches) if isinstance(matches, list) else 0


def _hostnames(spec: Fields) -> tuple[str, ...]:
    return limited_texts(spec, "hostnames", HOSTNAME, _MOST_HOSTNAMES)


def _close(manifest: Manifest, spec: Fields) -> None:
    """Refuse unknown fields of `spec` from a file; from a cluster they may be of newer CRDs."""
    if _in_cluster(manifest):
        for name in spec.unasked():
            spec.warn(name, _UNKNOWN, Code.FIELDS_NOT_USED)
    else:
        spec.close()


def _in_cluster(manifest: Manifest) -> bool:
    return isinstance(manifest.notes.origin, InCluster)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
