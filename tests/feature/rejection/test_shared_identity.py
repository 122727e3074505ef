"""Tests of two proxies that connect with one certificate."""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from tests.feature.identity.conftest import Server
from tests.feature.rejection.conftest import Join, Sidecar
from tests.meshes import texts
from tests.tools.deadline import until
from xds.protocol.resources.resource import LISTENER, Reference, ResourceName
from xds.stream_status import Variant

Serve = Callable[..., Awaitable[Server]]

NAME, CALLER = "one.store.shop", "two.buyer.shop"
INBOUND: Reference = (LISTENER, ResourceName("inbound-listener"))
OUTBOUND: Reference = (LISTENER, ResourceName("outbound-listener"))
DOCUMENTS = (
    texts.PERMISSIVE,
    texts.service("buyer", texts.port(80, 18080)),
    texts.workload("w-1", "10.0.0.1", app="store", account="store", uuid="one", spec="service: store"),
    texts.workload("w-2", "10.0.0.2", app="buyer", account="buyer", uuid="two", spec="service: buyer"),
)
BUSY = "cannot bind '0.0.0.0:15003': Address already in use"
MOMENTS = (
    BUSY,
    "cannot bind '10.0.0.1:15003': Cannot assign requested address",
    "cannot listen: Cannot allocate memory",
)


def _inbound(value: bytes) -> bool:
    return b"inbound-listener" in value


async def _row(server: Server, name: str = NAME) -> dict[str, Any]:
    """Return a proxy's row of `meshwright proxies`."""
    rows = (await server.ask("GET", "/debug/proxy"))["proxies"]
    (result,) = (row for row in rows if row["cn"] == name)
    return dict(result)


async def _shared(server: Server) -> list[dict[str, Any]]:
    """Return the problems of shared identities."""
    result = (await server.ask("GET", "/debug/policies"))["problems"]
    return [item for item in result if item["code"] == "identity-shared"]


async def _gauge(server: Server) -> float:
    return await server.metric("meshwright_shared_identities")


async def _is_alone(server: Server) -> bool:
    return (await _shared(server), await _gauge(server), (await _row(server))["why"]) == ([], 0.0, "")


def _knows(sidecar: Sidecar, word: bytes) -> bool:
    return any(word in value for value in sidecar.held.values())


@pytest.mark.parametrize("words", MOMENTS)
@pytest.mark.parametrize("variant", list(Variant))
async def test_transient_rejection_of_one_proxy_removes_nothing_from_the_other(
    serve: Serve, join: Join, variant: Variant, words: str
) -> None:
    """An error such as a used port costs only the second proxy its listener, now and later."""
    server = await serve(*DOCUMENTS)
    pair = server.certificate(NAME)
    first = join(server, NAME, variant, pair=pair)
    await until(lambda: INBOUND in first.held)
    second = join(server, NAME, variant, _inbound, words, pair=pair)
    await until(lambda: INBOUND in second.rejected)
    server.write(*DOCUMENTS, texts.service("another", texts.port(81, 18081)))
    await until(lambda: all(_knows(sidecar, b"another") for sidecar in (first, second)))
    assert INBOUND in first.held
    assert INBOUND not in second.held
    assert first.removed == []


async def test_shared_identity_is_reported_while_both_proxies_are_connected(serve: Serve, join: Join) -> None:
    """A problem of the workload, a metric and the proxy's row report it until one proxy disconnects."""
    server = await serve(*DOCUMENTS)
    pair = server.certificate(NAME)
    first = join(server, NAME, Variant.DELTA, pair=pair)
    await until(lambda: INBOUND in first.held)
    await until(partial(_is_alone, server))

    second = join(server, NAME, Variant.DELTA, _inbound, BUSY, pair=pair)

    async def told() -> bool:
        return bool(await _shared(server)) and await _gauge(server) == 1.0

    await until(told)
    (problem,) = await _shared(server)
    row = await _row(server)
    answer, _, rest = row["why"].partition("; ")
    addresses = re.findall(r"127\.0\.0\.1:[0-9]+", answer)
    assert answer == f"2 proxies share this identity: {', '.join(addresses)}"
    assert (len({*addresses}), row["address"], row["streams"]) == (2, addresses[-1], 2)
    bad = f"Error adding/updating listener(s) inbound-listener: {BUSY}"
    assert rest == f"listener rejected: {bad}: Workload shop/w-1 ({problem['origin']})"
    assert (problem["severity"], problem["object"], problem["field"], problem["value"]) == (
        "warning",
        "Workload shop/w-1",
        "proxy",
        NAME,
    )
    assert problem["origin"].startswith("mesh.yaml:")
    assert f"({' and '.join(addresses)})" in problem["expected"]

    second.end()
    await until(partial(_is_alone, server))
    assert INBOUND in first.held
    assert first.rejected == []


async def test_workload_is_admitted_once_its_inbound_listener_is_accepted(serve: Serve, join: Join) -> None:
    """Other acknowledgements do not admit the workload. The accepted listener, offered again, does."""
    server = await serve(*DOCUMENTS)
    callee = join(server, NAME, Variant.DELTA, _inbound, BUSY)
    await until(lambda: INBOUND in callee.rejected and OUTBOUND in callee.held)
    server.write(*DOCUMENTS, texts.service("another", texts.port(81, 18081)))
    await until(lambda: _knows(callee, b"another"))
    caller = join(server, CALLER, Variant.DELTA)

    async def admitted() -> bool:
        return bool((await _row(server, CALLER))["admitted"])

    await until(admitted)  # the admission is recorded after all earlier answers
    row = await _row(server)
    waits = "not admitted yet: its sidecar has not accepted its inbound listeners"
    assert (row["admitted"], waits in row["why"]) == (False, True)
    assert not _knows(caller, b"10.0.0.1")

    callee.rejects = lambda _: False
    offered = await server.ask("POST", "/proxies/retry", {"proxy": NAME})
    assert offered["offered"] == ["listener inbound-listener"]
    await until(lambda: _knows(caller, b"10.0.0.1"))
    assert (await _row(server))["admitted"]
