"""Tests of the oracle for calls out of the mesh, and of its agreement with policy."""

import random
from collections import Counter
from ipaddress import ip_address, ip_network

import pytest

from catalog.oracle.decide import Answer
from catalog.oracle.outside import ClientProtocol, OutsideCall, OutsideDecision, decide_outside
from catalog.oracle.request.paths import LocalReply, hidden_dots
from catalog.oracle.request.request import Request, fits, passed
from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.interception import InterceptionKind, SocketAddress
from catalog.policy.values.outside import OutsideHost, OutsideRange
from catalog.policy.values.proxy import ProxyPolicy
from catalog.relations.groups import groups
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import EGRESS
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.egress import covers
from meshwright.mesh.service import EscapedSlashes
from tests.meshes import values as a
from tests.meshes.random_meshes import random_mesh
from tests.tools.hypothesis_profiles import examples

MESHES = examples(60, fresh=150)
LEAST = 20 if MESHES == 150 else 8
ADDRESSES = ("10.1.2.3", "10.96.7.7", "192.0.2.1", "fd00::99", "2001:db8::1")
HOSTS = ("x.test", "a.x.test", "b.one", "10.96.0.1", "y.test", "X.Test", "x.test.", "b.one.")
PATHS = ("/x", "/y", "/z", "/x/..%2fy", "/x?y", "/a/../x")
CLIENT = a.identity("buyer")


def call(
    speaks: ClientProtocol, port: int = 80, host: str = "x.test", address: str = "192.0.2.1"
) -> OutsideCall:
    """Make a call by the buyer."""
    return OutsideCall(CLIENT, Port(port), speaks, host, IpAddress(address) if address else None)


def answered(*things: object, **asked: object) -> Answer:
    """Return the answer to a call."""
    return decide_outside(a.view(*things), call(**asked)).answer  # type: ignore[arg-type]


WEB = a.egress("web", "buyer", (80, "http"), (443, "https"), hosts=("x.test", "*.y.test"))


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ({"speaks": ClientProtocol.HTTP}, Answer.ALLOWED),
        ({"speaks": ClientProtocol.HTTP, "host": "X.TEST"}, Answer.ALLOWED),
        ({"speaks": ClientProtocol.HTTP, "host": "x.test."}, Answer.ALLOWED),
        ({"speaks": ClientProtocol.HTTP, "host": "x.test.."}, Answer.REFUSED),
        ({"speaks": ClientProtocol.HTTP, "host": "other.test"}, Answer.REFUSED),
        ({"speaks": ClientProtocol.HTTP, "host": "a.y.test"}, Answer.REFUSED),
        ({"speaks": ClientProtocol.HTTP, "port": 8080}, Answer.UNREACHABLE),
        ({"speaks": ClientProtocol.TLS}, Answer.UNREACHABLE),
        ({"speaks": ClientProtocol.TLS, "port": 443}, Answer.ALLOWED),
        ({"speaks": ClientProtocol.TLS, "port": 443, "host": "b.a.y.test"}, Answer.ALLOWED),
        ({"speaks": ClientProtocol.TLS, "port": 443, "host": "y.test"}, Answer.UNREACHABLE),
        ({"speaks": ClientProtocol.TLS, "port": 443, "host": ""}, Answer.UNREACHABLE),
        ({"speaks": ClientProtocol.OTHER, "port": 443}, Answer.UNREACHABLE),
    ],
)
def test_egress_lets_only_its_hosts_ports_and_protocols_pass(
    asked: dict[str, object], answer: Answer
) -> None:
    """Without an Egress the call is unreachable; with `egress` in the MeshConfig it is allowed."""
    assert answered(WEB, **asked) is answer
    assert answered(**asked) is Answer.UNREACHABLE
    assert answered(WEB, MeshConfig(egress=True), **asked) is Answer.ALLOWED


def test_decision_names_the_egress_and_the_route() -> None:
    """The call goes to its original address if a range contains it, and else where the DNS leads."""
    mesh = a.view(WEB, a.egress("all", "buyer", (80, "http"), networks=("192.0.2.0/24",)))
    one, other = (ObjectKey.from_name(EGRESS, a.policy_key(item)) for item in ("all", "web"))
    assert decide_outside(mesh, call(ClientProtocol.HTTP)) == OutsideDecision(Answer.ALLOWED, (one,))
    by_dns = decide_outside(mesh, call(ClientProtocol.HTTP, address="198.51.100.1"))
    assert by_dns == OutsideDecision(Answer.ALLOWED, (other,), by_dns=True)


def test_unknown_address_of_a_ranged_egress_makes_the_answer_depend() -> None:
    """The address of a DNS name may be unknown, and then only the range could decide."""
    ranged = a.egress("r", "buyer", (443, "https"), hosts=("x.test",), networks=("192.0.2.0/24",))
    assert answered(ranged, speaks=ClientProtocol.TLS, port=443, address="") is Answer.DEPENDS
    assert answered(ranged, speaks=ClientProtocol.TLS, port=443) is Answer.ALLOWED
    assert answered(ranged, speaks=ClientProtocol.TLS, port=443, address="198.51.100.1") is Answer.UNREACHABLE


@pytest.mark.fuzzed
def test_policy_and_oracle_agree_on_random_calls_out_of_the_mesh() -> None:
    """The policy is evaluated like a proxy does, which chooses the narrowest range."""
    dice, seen = random.Random(7), Counter[tuple[Answer, ClientProtocol]]()  # noqa: S311 - dice
    for seed in range(MESHES):
        mesh = random_mesh(random.Random(seed))  # noqa: S311 - dice
        view = View(mesh.settings)
        view.apply(view.edits_to(mesh.known()))
        for group in groups(view):
            try:
                policy = proxy_policy(view, group)
            except ValueError:  # the range of virtual addresses is too small in some
                continue
            if policy.interception is InterceptionKind.TRANSPARENT:
                for _ in range(20):
                    asked = _random_call(dice, policy)
                    if _is_ours(policy, asked):
                        continue
                    outside_decision = decide_outside(view, asked)
                    assert _by_policy(policy, asked) == (
                        outside_decision.answer is Answer.ALLOWED,
                        outside_decision.by_dns,
                    ), (
                        seed,
                        asked,
                        outside_decision,
                        policy.outside,
                    )
                    seen[outside_decision.answer, asked.speaks] += bool(policy.outside)
    assert all(seen[Answer.ALLOWED, client_protocol] >= LEAST for client_protocol in ClientProtocol), seen
    assert seen[Answer.REFUSED, ClientProtocol.HTTP] >= LEAST
    assert seen[Answer.UNREACHABLE, ClientProtocol.TLS] >= LEAST


def _random_call(dice: random.Random, policy: ProxyPolicy) -> OutsideCall:
    return OutsideCall(
        policy.identity,
        Port(dice.choice((80, 81, 443))),
        dice.choice(tuple(ClientProtocol)),
        dice.choice(HOSTS),
        IpAddress(dice.choice(ADDRESSES)),
        dice.choice(("GET", "POST")),
        dice.choice(PATHS),
    )


def _is_ours(policy: ProxyPolicy, asked: OutsideCall) -> bool:
    assert asked.address is not None
    where = SocketAddress(asked.address, asked.port)
    called = {
        SocketAddress(address, service.port) for service in policy.outbound for address in service.addresses
    }
    return where in policy.closed or where in called


def _by_policy(policy: ProxyPolicy, asked: OutsideCall) -> tuple[bool, bool]:
    """Return whether a call passes, and whether to the address in the DNS, as Envoy decides."""
    on = (policy.passthrough, False)
    port = next((outside_port for outside_port in policy.outside if outside_port.port == asked.port), None)
    what = None if port is None else _narrowest(port.ranges, str(asked.address))
    if port is None or what is None:
        return on
    if what.connections:
        return (True, False)
    match asked.speaks:
        case ClientProtocol.TLS if any(
            covers(server_name, asked.host.lower()) for server_name in what.server_names
        ):
            return (True, False)
        case ClientProtocol.HTTP if what.hosts:
            return _by_hosts(what.hosts, asked)
        case _ if what.hosts and not port.told_apart:
            return (False, False)
        case _:
            return on


def _narrowest(ranges: tuple[OutsideRange, ...], address: str) -> OutsideRange | None:
    result = [
        (ip_network(network).prefixlen if network else -1, what)
        for what in ranges
        for network in (what.networks or ("",))
        if not network or ip_address(address) in ip_network(network)
    ]
    return max(result, key=lambda item: item[0])[1] if result else None


def _by_hosts(hosts: tuple[OutsideHost, ...], asked: OutsideCall) -> tuple[bool, bool]:
    name = asked.host.lower().removesuffix(".")
    covering = [outside_host for outside_host in hosts if covers(outside_host.name, name)]
    if not covering:
        return (False, False)
    host = max(
        covering,
        key=lambda outside_host: (
            outside_host.name == name,
            outside_host.name != "*",
            len(outside_host.name),
        ),
    )
    headers = (("host", asked.host),)
    plain = Request(asked.client, a.service_key("x"), asked.port, asked.method, asked.path, headers)
    request = passed(plain, EscapedSlashes.KEEP)
    if isinstance(request, LocalReply):
        return (False, False)
    judged = any(route.matches is not None for route in host.routes)
    if judged and hidden_dots(request.path.partition("?")[0].encode()):
        return (False, False)
    for route in host.routes:
        if route.matches is None or any(fits(match, request) for match in route.matches):
            return (True, route.host is not None)
    return (False, False)
