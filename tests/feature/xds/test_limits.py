"""Each bound on what a client may cost, reached by a real client."""

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
async def test_names_are_bounded(
    serve: Serve, connect: Connect, limits: Limits, names: tuple[str, ...], words: str, variant: Variant
) -> None:
    """In number and in length; the client is told which bound it was."""
    client = connect((await serve(limits=limits)).port, variant)
    await client.ask(ENDPOINT, *names)

    assert await client.status() == (TOO_MUCH, words)


async def test_names_are_bounded_in_all_requests_together(serve: Serve, connect: Connect) -> None:
    """Incremental subscriptions add up."""
    client = connect((await serve(limits=Limits(names_per_certificate=3))).port, Variant.DELTA)
    await client.ask(ENDPOINT, "a", "b")
    await client.ask(ENDPOINT, "c", "d")

    assert await client.status() == (TOO_MUCH, "4 resource names with one certificate; 3 are allowed")


async def test_a_node_is_bounded(serve: Serve, connect: Connect) -> None:
    """Envoy's own has 61 KB; much more is no node."""
    client = connect((await serve(limits=Limits(node_bytes=100))).port)
    await client.ask(ENDPOINT, node="n" * 200)

    status, words = await client.status()
    assert (status, words.endswith("100 are allowed")) == (TOO_MUCH, True)


async def test_types_are_bounded(serve: Serve, connect: Connect) -> None:
    """A client that asks for ever new types is ended."""
    client = connect((await serve(limits=Limits(types_per_certificate=2))).port)
    for number in range(3):
        await client.ask(f"type.googleapis.com/t{number}", "x")

    assert await client.status() == (TOO_MUCH, "3 types asked for with one certificate; 2 are allowed")


async def test_s15_a_request_is_bounded(serve: Serve, connect: Connect) -> None:
    """The transport refuses what is larger."""
    client = connect((await serve(limits=Limits(request_bytes=10_000))).port)
    await client.send(discovery_pb2.DiscoveryRequest(resource_names=["x" * 20_000]))

    assert (await client.status())[0] is TOO_MUCH


async def test_streams_in_all_are_bounded(serve: Serve, connect: Connect, eventually: Eventually) -> None:
    """One more than allowed is turned away, and counted as refused."""
    served = await serve(limits=Limits(streams=1))
    first = connect(served.port)
    await first.ask(ENDPOINT, "a")
    await eventually(served.server.statuses)
    second = connect(served.port)

    assert await second.status() == (TOO_MUCH, "too many streams: try again later")
    assert served.seen.refusals == [StreamEnd.TOO_MANY]


async def test_new_streams_wait_for_their_turn_or_are_turned_away(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """At a crawl of one stream an hour the second one's turn is too far off."""
    served = await serve(limits=Limits(streams_per_second=1 / 3600))
    await connect(served.port).ask(ENDPOINT, "a")
    await eventually(served.server.statuses)

    assert (await connect(served.port).status())[0] is TOO_MUCH


async def test_s11_a_stream_ends_at_its_age(serve: Serve, connect: Connect) -> None:
    """In order, with OK: the client comes back, perhaps to another replica."""
    served = await serve(limits=Limits(age_seconds=0.05, write_seconds=1.0))
    client = connect(served.port)
    await client.ask(ENDPOINT, "a")

    assert (await client.status())[0] is grpc.StatusCode.OK
    assert served.seen.endings == [(StreamEnd.AGED, "")]


@given(st.floats(0, 1))
def test_the_age_varies_by_a_tenth(chance: float) -> None:
    """Streams opened together do not end together."""
    assert 1620 - 1e-6 <= Limits().age(chance) <= 1980 + 1e-6


def test_admission_spreads_a_storm_and_forgets_who_was_turned_away() -> None:
    """Of 30 at once at ten a second: two at once, then one each tenth; who would wait too long is refused."""
    admission = StreamQuota(Limits(streams_per_second=10, admission_seconds=2.0))
    waits = [admission.wait(100.0, 0) for _ in range(30)]

    granted = [round(wait, 3) for wait in waits if wait is not None]
    assert granted == [0.0, 0.0, *[n / 10 for n in range(1, 21)]]
    assert admission.wait(103.0, 0) == 0.0
