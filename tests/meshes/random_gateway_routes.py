"""Random routes of the Gateway API for the small meshes of `random_meshes`."""

import random

from meshwright.mesh.gateway.filters import Filters, Mirror, NewPath, PathForm, Redirect, Rewrite
from meshwright.mesh.gateway.references import BackendObject, ParentRef
from meshwright.mesh.gateway.routes import GatewayRoute, GRPCRoute, HTTPRoute, TCPRoute, TLSRoute
from meshwright.mesh.gateway.rules import Backend, Rule
from meshwright.mesh.kinds import GATEWAY_TCP_ROUTE, GRPC_ROUTE, HTTP_ROUTE, SERVICE, TLS_ROUTE, Kind
from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.routing import HeaderChanges
from meshwright.mesh.policies.smi import PolicyKey

KINDS: tuple[tuple[Kind, type[GatewayRoute]], ...] = (
    *((HTTP_ROUTE, HTTPRoute),) * 4,
    (GRPC_ROUTE, GRPCRoute),
    (TLS_ROUTE, TLSRoute),
    (GATEWAY_TCP_ROUTE, TCPRoute),
)
PATHS = (None, Exact("/a"), Prefix("/"), Prefix("/a"), Regex("/a.*"))
FILTERS = (
    *(Filters(),) * 6,
    Filters(request_headers=HeaderChanges(put=(("x-a", "1"),))),
    Filters(redirect=Redirect(scheme="https")),
    Filters(rewrite=Rewrite(path=NewPath(PathForm.FULL, "/b"))),
    Filters(unknown=("ExtensionRef",)),
)
CREATED = ("", "", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")


def gateway_route(
    dice: random.Random, names: tuple[str, ...], namespaces: tuple[Namespace, ...]
) -> tuple[ObjectKey, GatewayRoute]:
    """Make a route of any kind in one of the namespaces, for Services with these names."""
    kind, value = dice.choice(KINDS)
    key = PolicyKey(dice.choice(namespaces), dice.choice(names))

    def parent() -> ParentRef:
        port = dice.choice((None, None, Port(80), Port(81)))
        return ParentRef(SERVICE, dice.choice(names), dice.choice((None, *namespaces)), None, port)

    def backend() -> BackendObject:
        return BackendObject(
            SERVICE, dice.choice(namespaces), dice.choice(names), dice.choice((Port(80), Port(81)))
        )

    def rule() -> Rule:
        is_http = kind in (HTTP_ROUTE, GRPC_ROUTE)
        filters = dice.choice(FILTERS) if is_http else Filters()
        if is_http and dice.random() < 0.1:
            filters = Filters(mirrors=(Mirror(backend()),))
        matches = (
            tuple(_match(dice, kind) for _ in range(dice.choice((1, 1, 2)))) if is_http else (RequestMatch(),)
        )
        # A redirect together with backends is refused by every reader.
        count = 0 if filters.redirect is not None else dice.choice((0, 1, 1, 2))
        backends = tuple(Backend(backend(), dice.choice((0, 1, 3))) for _ in range(count))
        return Rule(matches, filters, backends, dropped=dice.choice(("", "", "", "", "a bad expression")))

    hostnames = dice.choice(((), ("a.test",), ("a.test", "*.b.test"))) if kind == TLS_ROUTE else ()
    parents = tuple(dict.fromkeys(parent() for _ in range(dice.choice((1, 1, 2)))))
    rules = tuple(rule() for _ in range(dice.choice((1, 1, 2))))
    route = value(key, parents, hostnames, rules, dice.choice((1, 2)), dice.choice(CREATED))
    return ObjectKey.from_name(kind, key), route


def _match(dice: random.Random, kind: Kind) -> RequestMatch:
    headers = dice.choice(((), (), (FieldMatch("x-a", Exact("1")),)))
    if kind == GRPC_ROUTE:
        path = dice.choice(
            (None, GrpcMethod("shop.Cart"), GrpcMethod("shop.Cart", "Add"), GrpcMethod(None, "Add"))
        )
        return RequestMatch(path, headers=headers, grpc=True)
    return RequestMatch(dice.choice(PATHS), dice.choice(((), (), ("GET",))), headers)
