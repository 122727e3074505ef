"""TrafficTarget, access.smi-spec.io v1alpha1 to v1alpha3.

v1alpha1 has its fields beside metadata and calls the rules `specs`; v1alpha2 and v1alpha3 have them in
`spec`. `destination.port` exists only in v1alpha1 and v1alpha2 (removed in release v0.6.0 of smi-spec).
"""

from typing import Final

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import UDP_ROUTE
from meshwright.mesh.names import Port
from meshwright.mesh.policies.smi import PolicyKey, RouteKind, Rule, TrafficTarget
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, one_of
from meshwright.specs.manifest import Manifest
from meshwright.specs.quotes import never
from meshwright.specs.values.references import account, object_name, port_or_digits

_ROUTE_KINDS: Final = tuple(RouteKind)
_KIND_RULE: Final = one_of(_ROUTE_KINDS)


def traffic_target(manifest: Manifest) -> TrafficTarget:
    """Read a TrafficTarget.

    The destination must be in the object's own namespace, as in OSM, because an author may set policy only
    for ServiceAccounts there. A source's namespace defaults to the object's.
    """
    old = manifest.version == "v1alpha1"
    fields = manifest.top() if old else manifest.spec()
    destination, port = _destination(manifest, fields.section("destination", required=True))
    rules_name = "specs" if old else "rules"
    rules = tuple(_rule(item) for item in fields.sections(rules_name))
    sources = tuple(account(item, manifest.namespace) for item in fields.sections("sources"))
    fields.close()
    for name, result in ((rules_name, rules), ("sources", sources)):
        if not result and not manifest.notes.refused:
            manifest.notes.warn(
                Code.EMPTY,
                fields.at(name),
                "is empty, so this TrafficTarget does not allow traffic; add at least one entry",
            )
    return TrafficTarget(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        destination=destination,
        sources=tuple(sorted(set(sources))),
        rules=rules,
        port=port,
    )


def _destination(manifest: Manifest, fields: Fields) -> tuple[ServiceIdentity, Port | None]:
    port = port_or_digits(fields, "port") if manifest.version in ("v1alpha1", "v1alpha2") else None
    identity = account(fields, manifest.namespace)
    if identity.namespace != manifest.namespace:
        fields.wrong("namespace", f"must be the object's own namespace {manifest.namespace}", Code.NAMESPACE)
    return identity, port


def _rule(fields: Fields) -> Rule:
    kind = fields.required_text("kind", _KIND_RULE, never)
    name = object_name(fields, "name")
    matches = fields.texts("matches")
    fields.close()
    if kind == UDP_ROUTE.name:
        fields.wrong("kind", "must be HTTPRouteGroup or TCPRoute; sidecars do not carry UDP", Code.UDP_ROUTE)
    elif kind and kind not in _ROUTE_KINDS:
        fields.wrong("kind", _KIND_RULE)
    elif kind == RouteKind.TCP and matches:
        fields.wrong("matches", "must be left out, because a TCPRoute does not have named matches")
    route = RouteKind.TCP if kind == RouteKind.TCP else RouteKind.HTTP
    return Rule(route, name, tuple(sorted(set(matches))))
