"""A route table with every form of match, action, share and treatment, as a value."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

from catalog.policy.values.destinations import ExternalDestination
from catalog.policy.values.interception import InterceptionKind, SocketAddress
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ProxyPolicy, ReachableServices
from catalog.policy.values.route_actions import (
    Answer,
    AnsweredShare,
    Forward,
    RequestMirror,
    RouteAction,
    ShareChanges,
    WeightedBackend,
)
from catalog.policy.values.route_table import AppliedRoute, RequestTreatment, RouteEntry, RouteSource
from meshwright.mesh.gateway.filters import Cors, NewPath, PathForm, Redirect, Rewrite
from meshwright.mesh.gateway.rules import Rule, RuleRetry
from meshwright.mesh.kinds import HTTP_ROUTE
from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch
from meshwright.mesh.names import IpAddress, Namespace, Port
from meshwright.mesh.policies.routing import HeaderChanges
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ExternalHost, Protocol

_ONE, _TWO = (ExternalHost(f"{name}.example.org") for name in ("one", "two"))
_HOSTS: Final = tuple(ExternalDestination(host, Port(80), is_http=True) for host in (_ONE, _TWO))
_TCP: Final = ExternalDestination(ExternalHost("db.example.org"), Port(5432), is_http=False)
_SECOND: Final = timedelta(seconds=1)


def _to(host: ExternalHost, weight: int = 1, own: ShareChanges | None = None) -> WeightedBackend:
    return WeightedBackend(host, "80", weight, own=own)


_FORWARD: Final = Forward((_to(_ONE),))
_MARK: Final = HeaderChanges(put=(("x-rule", "100%"),), add=(("x-all", "rule"),), remove=("x-old",))
_MARK_TOO: Final = HeaderChanges(put=(("host", "own.example.org"), ("x-rule", "share")), remove=("x-new",))
_TREATED: Final = RequestTreatment(_MARK, HeaderChanges(put=(("x-answer", "yes"),)))

MATCHES: Final = (
    RequestMatch(Exact("/exact")),
    RequestMatch(Prefix("/prefix")),
    RequestMatch(Regex("/regex/[0-9]+")),
    RequestMatch(Prefix("/post"), ("POST",)),
    RequestMatch(headers=(FieldMatch("x-exact", Exact("a.b")), FieldMatch("host", Exact("shop.example")))),
    RequestMatch(parameters=(FieldMatch("page", Exact("2")), FieldMatch("size", Regex("[0-9]+")))),
    RequestMatch(GrpcMethod("shop.Cart", "Add"), grpc=True),
    RequestMatch(GrpcMethod("shop.Cart"), grpc=True),
    RequestMatch(GrpcMethod(None, "Add"), grpc=True),
    RequestMatch(GrpcMethod("shop[.].*", "A.*", is_regex=True), grpc=True),
    RequestMatch(GrpcMethod(), grpc=True),
)


def _new(form: PathForm, path: str) -> NewPath:
    return NewPath(form, path)


REWRITES: Final = (
    ("/a", Rewrite("new.example.org", _new(PathForm.FULL, r"/whole\1"))),
    ("/b", Rewrite(None, _new(PathForm.PREFIX, "/xyz/"))),
    ("/c", Rewrite(None, _new(PathForm.PREFIX, "/"))),
    ("/", Rewrite(None, _new(PathForm.PREFIX, "/xyz"))),
)
REDIRECTS: Final = (
    ("/a", Redirect(status=301, port=Port(80))),
    ("/b", Redirect("https", port=Port(443))),
    ("/c", Redirect("https", "new.example.org", _new(PathForm.FULL, "/whole"), Port(443), 303)),
    ("/d", Redirect(None, None, _new(PathForm.PREFIX, "/xyz"), Port(8443), 307)),
    ("/e", Redirect(None, "new.example.org", _new(PathForm.PREFIX, ""), Port(8080), 308)),
)
ACTIONS: Final[tuple[RouteAction, ...]] = (
    Answer(500),
    Forward((_to(_ONE, 70), _to(_TWO, 30), _to(_TWO, 0))),
    Forward((_to(_ONE, 20), AnsweredShare(500, 30), _to(_TWO, 0), AnsweredShare(403, 50))),
    Forward(
        (
            _to(_ONE, 1, ShareChanges(_MARK_TOO, _MARK, Rewrite("two.example.org"))),
            _to(_TWO, 2, ShareChanges(mirrors=(RequestMirror(_to(_ONE), 1, 3),))),
        ),
        rewrite=Rewrite(None, _new(PathForm.FULL, "/both")),
        mirrors=(RequestMirror(_to(_TWO)), RequestMirror(_to(_ONE), 12.5)),
    ),
    replace(_FORWARD, timeout=5 * _SECOND, per_try=_SECOND),
    replace(_FORWARD, retries=RuleRetry(3, (500, 504), _SECOND), per_try=_SECOND),
    replace(_FORWARD, retries=RuleRetry(0)),
)
CORS: Final = Cors(
    ("https://shop.example.org", "https://*.example.com:8443"), ("GET", "*"), ("x-a", "x-b"), ("x-c",), True
)


def _entries() -> Iterator[tuple[RequestMatch, RouteAction, RequestTreatment | None]]:
    yield from ((match, _FORWARD, None) for match in MATCHES)
    yield from (
        (RequestMatch(Prefix(path)), replace(_FORWARD, rewrite=wanted), None) for path, wanted in REWRITES
    )
    yield from ((RequestMatch(Prefix(path)), wanted, None) for path, wanted in REDIRECTS)
    yield from ((RequestMatch(Prefix("/action")), action, _TREATED) for action in ACTIONS)
    yield RequestMatch(), _FORWARD, RequestTreatment(cors=CORS)


def _table() -> Iterator[RouteEntry]:
    by = PolicyKey(Namespace("golden"), "routes")
    for number, (match, action, treatment) in enumerate(_entries()):
        source = RouteSource(AppliedRoute(HTTP_ROUTE, by, number, Rule((match,))))
        yield RouteEntry((match,), action, (source,), treatment)


def _by_name() -> Iterator[RouteEntry]:
    """Yield entries of connections, by server name."""
    yield RouteEntry((), _FORWARD, server_names=("a.example.org", "*.b.example.org"))
    yield RouteEntry((), Answer(500), server_names=("c.example.org",))


def _local(port: int) -> tuple[SocketAddress, ...]:
    return (SocketAddress(IpAddress("127.0.90.1"), Port(port)),)


def policy(of: ProxyPolicy) -> ProxyPolicy:
    """Return the policy `of` a proxy that calls one host by all entries, and another without requests."""
    connections = Forward((WeightedBackend(_TCP.host, "5432", 3), AnsweredShare(500, 1)))
    services = (
        OutboundService(_ONE, Port(80), Protocol.HTTP, tuple(_table()), listen=_local(9000)),
        OutboundService(_TWO, Port(443), Protocol.TCP, tuple(_by_name()), listen=_local(9002)),
        OutboundService(
            _TCP.host, _TCP.port, Protocol.TCP, (RouteEntry((), connections),), listen=_local(9001)
        ),
    )
    reachable = ReachableServices.from_sorted(services, (*_HOSTS, _TCP))
    return replace(of, interception=InterceptionKind.EXPLICIT, reachable=(reachable,))
