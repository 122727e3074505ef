"""Tests of OSM's Egress in its four forms, with real Envoys: calls that leave a pod, and calls that do not.

A server outside the mesh is reachable from each pod. The DNS name `localhost` is another server, in the
client's own network, so the answering server shows where a call went.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import pytest_asyncio

from certs.contract import Names, Usage
from certs.keys.pair import issue_pair
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.machines import APPLICATION_UID
from tests.e2e.policy import applications
from tests.e2e.policy.applications import DATABASE, ECHO, GREETER, HTTP
from tests.e2e.policy.calls import CLOSED, NOBODY
from tests.e2e.policy.pods import ADDRESSES, API, DB, NODES, OUTSIDE, Pods, bound
from tests.e2e.policy.policies import ALL, EVERYTHING, config, egress, limiting_host, path, routes, target
from tests.golden.envoys import Place
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]

TLS = 8443
CLIENT = "shop/client"
BY_DNS = "by-dns"
SAID = "outside: hello\n"
OPEN = (*EVERYTHING, target("t", "shop/node", (CLIENT,), *ALL))
PASSTHROUGH = config(traffic={"enableEgress": True})


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def outside(pods: Pods, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ssl.SSLContext]:
    """Servers in addition to the usual ones: one with TLS, and one at `localhost` for the client."""
    names = Names("secure.example.org", dns_names=("secure.example.org",))
    authority, now = pods.live.authority, datetime.now(UTC)
    pair = issue_pair(authority, Usage.SERVER, names, timedelta(hours=1), now)
    file = tmp_path_factory.mktemp("outside") / "pair.pem"
    file.write_bytes(pair.chain_pem + pair.key.reveal())
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(file)
    async with AsyncExitStack() as ends:
        await applications.start(BY_DNS, partial(bound, pods.machines["client"], "127.0.0.1"), ends)
        server = await asyncio.start_server(
            applications.lines("outside"), sock=bound(pods.machines["switch"], "", TLS), ssl=served
        )
        ends.callback(server.close)
        yield served


@pytest.fixture
def trusting_context() -> ssl.SSLContext:
    """A client that accepts any certificate, because the tests are about the connection's destination."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def test_egress_host_has_the_connection_limits_of_its_setting(pods: Pods) -> None:
    """The UpstreamTrafficSetting that the Egress refers to limits the host, and overflow is counted.

    Other hosts have no limit.
    """
    reference = {"apiGroup": "policy.openservicemesh.io/v1alpha1", "kind": "UpstreamTrafficSetting"}
    limited = egress(
        "e", CLIENT, (HTTP, "http"), hosts=(OUTSIDE, "localhost"), matches=[{**reference, "name": "few"}]
    )
    await pods.enforce(limited, limiting_host(OUTSIDE, connectionSettings={"http": {"maxRequests": 1}}))
    session = Place(
        open_socket=partial(pods.machines["client"].socket, socket.AF_INET, APPLICATION_UID)
    ).session()
    async with session, session.ws_connect(f"http://{OUTSIDE}:{HTTP}/ws"):
        assert [(await pods.get("client", OUTSIDE, HTTP)).status for _ in range(3)] == [503] * 3
        assert (await pods.get("client", OUTSIDE, HTTP, host="localhost")).by == BY_DNS
        name = f"cluster.{OUTSIDE}_{HTTP}"
        assert await pods.live.stat("client", f"{name}.circuit_breakers.default.rq_open") == 1
        assert await pods.live.stat("client", f"{name}.upstream_rq_active_overflow") == 3

    async def taken() -> bool:
        return (await pods.get("client", OUTSIDE, HTTP)).by == "outside"

    await until(taken)


async def test_http_egress_is_routed_by_the_requested_host(pods: Pods) -> None:
    """The host of each request is resolved by DNS, whatever address was called.

    Other hosts, ports and callers are refused.
    """
    await pods.enforce()
    assert await pods.get("client", OUTSIDE, HTTP) == NOBODY
    await pods.enforce(egress("e", CLIENT, (HTTP, "http"), hosts=(OUTSIDE, "localhost")))
    assert (await pods.get("client", OUTSIDE, HTTP)).by == "outside"
    assert (await pods.get("client", OUTSIDE, HTTP, host=f"localhost:{HTTP}")).by == BY_DNS
    for same in ("LOCALHOST", "localhost.", f"localhost.:{HTTP}"):
        assert (await pods.get("client", OUTSIDE, HTTP, host=same)).by == BY_DNS
    assert (await pods.get("client", "10.77.0.249", HTTP, host="localhost")).by == BY_DNS
    for other in ("other.example.org", "localhost:81", "sub.localhost", ADDRESSES[NODES[0]]):
        assert (await pods.get("client", OUTSIDE, HTTP, host=other)).status == 404, other
    assert await pods.get("client", OUTSIDE, applications.ADMIN) == NOBODY
    assert await pods.get(NODES[0], OUTSIDE, HTTP) == NOBODY
    await pods.enforce()
    assert await pods.get("client", OUTSIDE, HTTP) == NOBODY


async def test_http_egress_admits_only_requests_that_match_its_route_groups(pods: Pods) -> None:
    """Matches are by path and method.

    Two Egresses of one host admit the union, and a missing group admits no request.
    """
    books = egress("a", CLIENT, (HTTP, "http"), hosts=(OUTSIDE,), matches=[_group("books")])
    group = routes("books", path("/books/.*", "GET"))
    await pods.enforce(books, group)
    assert (await pods.get("client", OUTSIDE, HTTP, "/books/1")).by == "outside"
    assert (await pods.get("client", OUTSIDE, HTTP, "/books/1", method="POST")).status == 404
    assert (await pods.get("client", OUTSIDE, HTTP, "/other")).status == 404
    other = egress("b", CLIENT, (HTTP, "http"), hosts=(OUTSIDE,), matches=[_group("other")])
    await pods.enforce(books, group, other, routes("other", path("/other")))
    assert (await pods.get("client", OUTSIDE, HTTP, "/books/1")).by == "outside"
    assert (await pods.get("client", OUTSIDE, HTTP, "/other")).by == "outside"
    assert (await pods.get("client", OUTSIDE, HTTP, "/neither")).status == 404
    await pods.enforce(books)
    assert (await pods.get("client", OUTSIDE, HTTP, "/books/1")).status == 404


async def test_http_egress_with_ranges_keeps_the_original_destination(pods: Pods) -> None:
    """Hosts below a wildcard, without DNS, are admitted within the range.

    Outside the range every host is refused.
    """
    inside = [f"{OUTSIDE}/32"]
    await pods.enforce(
        egress("e", CLIENT, (HTTP, "http"), hosts=("*.example.org", "localhost"), ipAddresses=inside)
    )
    assert (await pods.get("client", OUTSIDE, HTTP, host="a.b.example.org")).by == "outside"
    assert (await pods.get("client", OUTSIDE, HTTP, host="localhost")).by == "outside"
    assert (await pods.get("client", OUTSIDE, HTTP, host="example.org")).status == 404
    assert await pods.get("client", "10.77.0.249", HTTP, host="localhost") == NOBODY
    await pods.enforce(egress("e", CLIENT, (HTTP, "http"), ipAddresses=inside))
    assert (await pods.get("client", OUTSIDE, HTTP, host="whatever.test")).by == "outside"


async def test_https_egress_is_decided_by_the_requested_server_name(
    pods: Pods, trusting_context: ssl.SSLContext
) -> None:
    """Connections with an admitted server name keep their destination.

    Other names, no name and plain text are refused, and a range restricts as well.
    """

    async def hello(name: str | None) -> str:
        return await pods.hello("client", OUTSIDE, TLS, tls=trusting_context, name=name)

    await pods.enforce()
    assert await hello("secure.example.org") == CLOSED
    names = ("secure.example.org", "*.example.com")
    await pods.enforce(egress("e", CLIENT, (TLS, "https"), hosts=names))
    assert await hello("secure.example.org") == await hello("a.b.example.com") == SAID
    assert await hello("example.com") == await hello("other.example.org") == await hello("") == CLOSED
    assert await pods.get("client", OUTSIDE, TLS, host="secure.example.org") == NOBODY
    await pods.enforce(egress("e", CLIENT, (TLS, "https"), hosts=names, ipAddresses=["192.0.2.0/24"]))
    assert await hello("secure.example.org") == CLOSED
    await pods.enforce(egress("e", CLIENT, (TLS, "https"), ipAddresses=[f"{OUTSIDE}/24"]))
    assert await hello("whatever.test") == SAID


@pytest.mark.parametrize(("port", "spoken"), [(ECHO, "tcp"), (GREETER, "tcp-server-first")])
async def test_tcp_egress_is_decided_by_address_and_port(pods: Pods, port: int, spoken: str) -> None:
    """Both client-first and server-first protocols pass. Other ranges, ports and callers are refused."""
    first = port == GREETER
    text = f"outside speaks first\n{SAID}" if first else SAID
    await pods.enforce()
    assert await pods.hello("client", OUTSIDE, port, first=first) == CLOSED
    await pods.enforce(egress("e", CLIENT, (port, spoken), ipAddresses=["10.77.0.248/29"]))
    assert await pods.hello("client", OUTSIDE, port, first=first) == text
    assert await pods.hello("client", OUTSIDE, DATABASE, first=True) == CLOSED
    assert await pods.hello(NODES[0], OUTSIDE, port, first=first) == CLOSED
    await pods.enforce(egress("e", CLIENT, (port, spoken), ipAddresses=["10.77.0.0/28"]))
    assert await pods.hello("client", OUTSIDE, port, first=first) == CLOSED


async def test_narrowest_egress_range_includes_the_hosts_of_wider_ranges(
    pods: Pods, trusting_context: ssl.SSLContext
) -> None:
    """The filter chains of the narrowest range include the names of wider Egresses.

    Envoy selects only the narrowest matching range.
    """
    await pods.enforce(
        egress("wide", CLIENT, (TLS, "https"), hosts=("secure.example.org",)),
        egress("narrow", CLIENT, (TLS, "https"), hosts=("other.example.org",), ipAddresses=["10.77.0.0/24"]),
    )
    for name in ("secure.example.org", "other.example.org"):
        assert await pods.hello("client", OUTSIDE, TLS, tls=trusting_context, name=name) == SAID
    assert await pods.hello("client", OUTSIDE, TLS, tls=trusting_context, name="third.example.org") == CLOSED


async def test_egress_does_not_bypass_the_policy_of_mesh_services(pods: Pods) -> None:
    """An Egress that lists every host and address does not open a mesh service to a denied caller."""
    node = ADDRESSES[NODES[0]]
    hosts = ("api.shop", "api.shop.svc.cluster.local", API, "localhost")
    everything = egress("tcp", CLIENT, (DATABASE, "tcp-server-first"), (GREETER, "tcp"), (HTTP, "tcp"))
    await pods.enforce(everything, egress("http", CLIENT, (80, "http"), hosts=hosts))
    assert await pods.get("client", API, host="localhost") == NOBODY
    for host in hosts[:-1]:
        assert (await pods.get("client", OUTSIDE, host=host)).status == 404, host
    assert await pods.hello("client", DB, DATABASE, first=True) == CLOSED
    assert await pods.get("client", node, HTTP) == NOBODY
    assert await pods.hello("client", node, GREETER, first=True) == CLOSED
    assert (await pods.get("client", OUTSIDE, HTTP)).by == "outside"
    assert (await pods.hello("client", OUTSIDE, DATABASE, first=True)).endswith(SAID)
    whole = egress("exactly", CLIENT, (80, "tcp"), ipAddresses=[f"{API}/32", f"{OUTSIDE}/32"])
    await pods.enforce(whole)
    assert await pods.get("client", API) == NOBODY


async def test_mesh_services_are_called_as_before_beside_egress(pods: Pods) -> None:
    """Services on ports that Egresses also list are called by policy and with mTLS.

    A server-first protocol is not delayed.
    """
    await pods.enforce(
        *OPEN,
        egress("all", CLIENT, (80, "tcp"), (DATABASE, "https"), (DATABASE, "http"), hosts=("localhost",)),
        egress("http", CLIENT, (80, "http"), hosts=("api.shop", "localhost")),
    )
    assert (await pods.get("client", API)).by in NODES
    assert (await pods.get("client", API, host="localhost")).by in NODES
    async with asyncio.timeout(10):
        assert (await pods.hello("client", DB, DATABASE, first=True)).endswith(": hello\n")


async def test_egress_rules_still_apply_in_a_mesh_with_passthrough(
    pods: Pods, trusting_context: ssl.SSLContext
) -> None:
    """Requests to the Egress' hosts obey its matches.

    Other hosts, other protocols and other server names pass through.
    """
    await pods.enforce(
        PASSTHROUGH,
        egress("e", CLIENT, (HTTP, "http"), (TLS, "https"), hosts=("localhost",), matches=[_group("books")]),
        routes("books", path("/books/.*")),
        egress("first", CLIENT, (ECHO, "http"), (ECHO, "https"), hosts=("localhost",)),
    )
    assert (await pods.get("client", OUTSIDE, HTTP, "/books/1", host="localhost")).by == BY_DNS
    assert (await pods.get("client", OUTSIDE, HTTP, "/other", host="localhost")).status == 404
    assert (await pods.get("client", OUTSIDE, HTTP, "/other")).by == "outside"
    assert await pods.hello("client", OUTSIDE, ECHO) == SAID
    assert await pods.hello("client", OUTSIDE, TLS, tls=trusting_context, name="whatever.test") == SAID
    assert await pods.hello("client", OUTSIDE, TLS, tls=trusting_context, name="localhost") == SAID
    assert (await pods.hello("client", OUTSIDE, GREETER, first=True)).endswith(SAID)
    assert await pods.get("client", API, host="localhost") == NOBODY


def _group(name: str) -> dict[str, str]:
    return {"apiGroup": "specs.smi-spec.io/v1alpha4", "kind": "HTTPRouteGroup", "name": name}
