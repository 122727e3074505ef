"""Tests of the MeshConfig's authorizer and span collector."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

import pytest
import pytest_asyncio

from protos.opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.e2e.policy.applications import ECHO
from tests.e2e.policy.policies import (
    ALL,
    EVERYTHING,
    Document,
    authorization,
    config,
    extension_service,
    http,
    path,
    routes,
    target,
)
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.e2e.policy.servers import Authorizer, Collector, OtlpCollector
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.usefixtures("no_connections"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def authorizer() -> AsyncIterator[Authorizer]:
    """One authorizer for all tests of the file."""
    async with AsyncExitStack() as ends:
        yield await Authorizer.start(ends)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def collector() -> AsyncIterator[Collector]:
    """One collector for all tests of the file."""
    async with AsyncExitStack() as ends:
        yield await Collector.start(ends)


def asking(port: int, **more: object) -> Document:
    """Return a MeshConfig with an authorizer on this machine."""
    fields = {"enable": True, "address": "127.0.0.1", "port": port, **more}
    return config(traffic={"inboundExternalAuthorization": fields})


async def test_authorizer_checks_only_requests_that_policy_admits(
    mesh: PolicyMesh, authorizer: Authorizer
) -> None:
    """The authorizer refuses some of them and gets the caller's identity.

    Requests that policy refuses, and TCP connections, are not checked.
    """
    rules = (routes("g", path("/a.*")), target("t", "shop/v1", ("shop/client",), http("g")))
    authorizer.decide = lambda request: request.attributes.request.http.path != "/ab"
    await mesh.enforce(*rules, asking(authorizer.port))
    assert (await mesh.get("client", "v1", "/a")).status == 200
    assert (await mesh.get("client", "v1", "/ab")).status == 403
    assert (await mesh.get("client", "v1", "/b")).status == 403
    heard = [check_request.attributes for check_request in authorizer.asked]
    assert [attribute_context.request.http.path for attribute_context in heard] == ["/a", "/ab"]
    assert {attribute_context.source.principal for attribute_context in heard} == {
        "spiffe://cluster.local/ns/shop/sa/client"
    }
    assert {attribute_context.request.http.body for attribute_context in heard} == {""}
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL), asking(authorizer.port))
    assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"
    assert len(authorizer.asked) == 2


async def test_unavailable_authorizer_refuses_or_admits_by_its_failure_mode(mesh: PolicyMesh) -> None:
    """All requests are refused, or those that policy admits pass, as the MeshConfig sets.

    Without an authorizer, policy alone decides.
    """
    rules = (*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    await mesh.enforce(*rules, asking(9, timeout="200ms"))
    assert (await mesh.get("client", "v1")).status == 403
    await mesh.enforce(*rules, asking(9, timeout="200ms", failureModeAllow=True))
    assert (await mesh.get("client", "v1")).status == 200
    assert (await mesh.get("v2", "v1")).status != 200
    await mesh.enforce(*rules)
    assert (await mesh.get("client", "v1")).status == 200


async def test_both_sidecars_report_zipkin_spans_of_a_sampled_request(
    mesh: PolicyMesh, collector: Collector
) -> None:
    """The spans are in the trace that the application has begun; an unsampled request has none."""
    tracing = {"enable": True, "address": "127.0.0.1", "port": collector.port, "endpoint": "/told"}
    rules = (*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    await mesh.enforce(*rules, config(observability={"tracing": tracing}))
    trace = "463ac35c9f6413ad48485a3953bb6124"
    fields = {"X-B3-TraceId": trace, "X-B3-SpanId": "a2fb4a1d1a96d312", "X-B3-Sampled": "1"}
    assert (await mesh.get("client", "v1", "/seen", headers=fields)).status == 200
    spans = await collector.traced(trace, 2)
    assert {span["kind"] for span in spans} == {"CLIENT", "SERVER"}
    assert {span["localEndpoint"]["serviceName"] for span in spans} == {"client.shop", "v1.shop"}
    assert {span["tags"]["http.status_code"] for span in spans} == {"200"}
    assert collector.paths == {"/told"}
    silent = {**fields, "X-B3-TraceId": "0" * 31 + "1", "X-B3-Sampled": "0"}
    assert (await mesh.get("client", "v1", "/unseen", headers=silent)).status == 200
    await mesh.enforce(*rules)
    assert (
        await mesh.get("client", "v1", "/after", headers={**fields, "X-B3-TraceId": "2" * 32})
    ).status == 200
    assert {span["traceId"] for span in collector.spans} == {trace}


async def test_both_sidecars_report_otlp_spans_of_a_sampled_request(mesh: PolicyMesh) -> None:
    """The spans are in the trace of the traceparent header, and each is the child of the previous one."""
    rules = (*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    async with AsyncExitStack() as ends:
        collector = await OtlpCollector.start(ends)
        tracing = {"enable": True, "address": "127.0.0.1", "port": collector.port, "protocol": "OTLP"}
        await mesh.enforce(*rules, config(observability={"tracing": tracing}))
        trace, unsampled = "4bf92f3577b34da6a3ce929d0e0e4736", "0" * 31 + "1"
        silent = {"traceparent": f"00-{unsampled}-00f067aa0ba902b7-00"}
        assert (await mesh.get("client", "v1", "/unseen", headers=silent)).status == 200
        fields = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
        assert (await mesh.get("client", "v1", "/seen", headers=fields)).status == 200
        spans = await collector.traced(trace, 2)
        by = {span.kind: (teller, span) for teller, span in spans}
        (caller, calling), (callee, called) = by[Span.SPAN_KIND_CLIENT], by[Span.SPAN_KIND_SERVER]
        told_by = [(item["service.name"], item["service.instance.id"]) for item in (caller, callee)]
        assert told_by == [("client.shop", "client"), ("v1.shop", "v1")]
        assert calling.parent_span_id.hex() == "00f067aa0ba902b7"
        assert called.parent_span_id == calling.span_id
        assert {item.trace_id.hex() for _, item in collector.spans} == {trace}
        await mesh.enforce(*rules)


async def test_authorizer_of_an_account_replaces_that_of_the_mesh(
    mesh: PolicyMesh, authorizer: Authorizer
) -> None:
    """Requests that policy refuses are not checked, and no header changes the caller's identity."""
    to_v1, to_v2 = (
        target(f"to-{item}", f"shop/{item}", ("shop/client",), http("g")) for item in ("v1", "v2")
    )
    rules = (routes("g", path("/a.*")), to_v1, to_v2)
    authorizer.asked.clear()
    authorizer.decide = lambda request: request.attributes.request.http.path != "/ab"
    own = authorization("own", serviceAccounts=["v1"], host="127.0.0.1", port=authorizer.port)
    await mesh.enforce(*rules, own, asking(9, timeout="200ms"))
    thief = {
        "x-forwarded-client-cert": "URI=spiffe://cluster.local/ns/shop/sa/thief",
        "source.principal": "x",
    }

    # Connections that are open are drained with the listener that they came by.
    async def one_is_asked_about() -> bool:
        assert (await mesh.get("client", "v1", "/a", headers=thief)).status == 200
        return "/a" in {check_request.attributes.request.http.path for check_request in authorizer.asked}

    async def refused(service: str, path: str) -> bool:
        return (await mesh.get("client", service, path)).status == 403

    await until(one_is_asked_about, seconds=20)
    await until(partial(refused, "v1", "/ab"), seconds=20)
    assert await refused("v1", "/b")
    assert (await mesh.get("v2", "v1", "/a")).status != 200
    await until(partial(refused, "v2", "/a"), seconds=20)  # the mesh's is not there
    heard = [check_request.attributes for check_request in authorizer.asked]
    assert {attribute_context.request.http.path for attribute_context in heard} == {"/a", "/ab"}
    assert {attribute_context.source.principal for attribute_context in heard} == {
        "spiffe://cluster.local/ns/shop/sa/client"
    }


async def test_unavailable_authorizer_of_an_account_follows_its_failure_mode(mesh: PolicyMesh) -> None:
    """A missing or hanging authorizer refuses in time, or admits what policy admits.

    A disabled one exempts the account from the mesh's authorizer.
    """
    rules = (*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))

    async def answers(status: int) -> None:
        # Connections that are open are drained with the listener that they came by.
        async def does() -> bool:
            return (await mesh.get("client", "v1")).status == status

        await until(does, seconds=20)

    with socket.create_server(("127.0.0.1", 0)) as hanging:
        for port in (9, hanging.getsockname()[1]):
            answer = {"host": "127.0.0.1", "port": port, "timeout": "200ms"}
            await mesh.enforce(*rules, authorization("own", **answer))
            await answers(403)
            await mesh.enforce(*rules, authorization("own", **answer, failureModeAllow=True))
            await answers(200)
            assert (await mesh.get("v2", "v1")).status != 200
        await mesh.enforce(*rules, asking(9, timeout="200ms"))
        await answers(403)
    await mesh.enforce(*rules, authorization("own", disabled=True), asking(9, timeout="200ms"))
    await answers(200)
    await mesh.enforce(*rules)


async def test_extension_service_gives_the_address_of_an_authorizer(
    mesh: PolicyMesh, authorizer: Authorizer
) -> None:
    """While the named ExtensionService is missing, all requests are refused.

    Once it exists, the authorizer is used.
    """
    rules = (*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    own = authorization("own", serviceAccounts=["v1"], extensionService={"name": "opa"}, timeout="200ms")
    authorizer.asked.clear()
    authorizer.decide = lambda request: True

    async def answered(status: int) -> bool:
        return (await mesh.get("client", "v1", "/named")).status == status

    await mesh.enforce(*rules, own)
    await until(partial(answered, 403), seconds=20)
    assert authorizer.asked == []
    await mesh.enforce(*rules, own, extension_service("opa", authorizer.port))
    await until(partial(answered, 200), seconds=20)
    assert {check_request.attributes.request.http.path for check_request in authorizer.asked} == {"/named"}
    await mesh.enforce(*rules)
