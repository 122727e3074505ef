"""Tests of each limit on a client's cost, with a real client."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.hooks import StreamEnd
from xds.limits import Limits, StreamQuota
from xds.protocol.resources.resource import ENDPOINT
from xds.stream_status import Variant

Serve = Callable[..., Awaitable[Any]]
Connect = Callable[..., Any]
Eventually = Callable[[Callable[[], object]], Awaitable[None]]
TOO_MUCH = grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    ("limits", "names", "words"),
    [
        (
            Limits(names_per_certificate=2),
            ("a", "b", "c"),
            "3 resource names with one certificate; 2 are allowed",
        ),
        (Limits(name_characters=3), ("abcd",), "4 characters in a resource name; 3 are allowed"),
    ],
)
@pytest.mark.parametrize("variant", list(Variant))
async def test_resource_names_are_limited_in_number_and_length(
    serve: Serve, connect: Connect, limits: Limits, names: tuple[str, ...], words: str, variant: Variant
) -> None:
    """The status message names the limit and the value."""
    client = connect((await serve(limits=limits)).port, variant)
    await client.ask(ENDPOINT, *names)

    assert await client.status() == (TOO_MUCH, words)


async def test_names_of_all_requests_are_limited_together(serve: Serve, connect: Connect) -> None:
    """Incremental subscriptions add up."""
    client = connect((await serve(limits=Limits(names_per_certificate=3))).port, Variant.DELTA)
    await client.ask(ENDPOINT, "a", "b")
    await client.ask(ENDPOINT, "c", "d")

    assert await client.status() == (TOO_MUCH, "4 resource names with one certificate; 3 are allowed")


async def test_node_has_a_maximum_size(serve: Serve, connect: Connect) -> None:
    """Envoy's own node has 61 KB, so a much larger one is refused."""
    client = connect((await serve(limits=Limits(node_bytes=100))).port)
    await client.ask(ENDPOINT, node="n" * 200)

    status, words = await client.status()
    assert (status, words.endswith("100 are allowed")) == (TOO_MUCH, True)


async def test_number_of_types_is_limited(serve: Serve, connect: Connect) -> None:
    """A client that requests ever new types is ended."""
    client = connect((await serve(limits=Limits(types_per_certificate=2))).port)
    for number in range(3):
        await client.ask(f"type.googleapis.com/t{number}", "x")

    assert await client.status() == (TOO_MUCH, "3 types asked for with one certificate; 2 are allowed")


async def test_s15_request_has_a_maximum_size(serve: Serve, connect: Connect) -> None:
    """The transport refuses a larger request."""
    client = connect((await serve(limits=Limits(request_bytes=10_000))).port)
    await client.send(discovery_pb2.DiscoveryRequest(resource_names=["x" * 20_000]))

    assert (await client.status())[0] is TOO_MUCH


async def test_number_of_streams_is_limited(serve: Serve, connect: Connect, eventually: Eventually) -> None:
    """One stream above the limit is refused, and counted as refused."""
    served = await serve(limits=Limits(streams=1))
    first = connect(served.port)
    await first.ask(ENDPOINT, "a")
    await eventually(served.server.statuses)
    second = connect(served.port)

    assert await second.status() == (TOO_MUCH, "too many streams: try again later")
    assert served.seen.refusals == [StreamEnd.TOO_MANY]


async def test_stream_with_a_too_long_wait_is_refused(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """At one stream each hour, the second one would wait longer than allowed."""
    served = await serve(limits=Limits(streams_per_second=1 / 3600))
    await connect(served.port).ask(ENDPOINT, "a")
    await eventually(served.server.statuses)

    assert (await connect(served.port).status())[0] is TOO_MUCH


async def test_s11_stream_ends_with_ok_at_its_maximum_age(serve: Serve, connect: Connect) -> None:
    """The client reconnects, perhaps to another replica."""
    served = await serve(limits=Limits(age_seconds=0.05, write_seconds=1.0))
    client = connect(served.port)
    await client.ask(ENDPOINT, "a")

    assert (await client.status())[0] is grpc.StatusCode.OK
    assert served.seen.endings == [(StreamEnd.AGED, "")]


@given(st.floats(0, 1))
def test_maximum_age_varies_by_ten_percent(chance: float) -> None:
    """Streams that were opened together do not end together."""
    assert 1620 - 1e-6 <= Limits().age(chance) <= 1980 + 1e-6


def test_stream_quota_spreads_a_burst_and_refuses_the_rest() -> None:
    """Of 30 streams two are admitted at once, then one each 0.1 s up to 2 s. Refused ones use no quota."""
    admission = StreamQuota(Limits(streams_per_second=10, admission_seconds=2.0))
    waits = [admission.wait(100.0, 0) for _ in range(30)]

    granted = [round(wait, 3) for wait in waits if wait is not None]
    assert granted == [0.0, 0.0, *[n / 10 for n in range(1, 21)]]
    assert admission.wait(103.0, 0) == 0.0
