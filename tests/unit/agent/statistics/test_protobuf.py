"""Messages are what the library for them reads and writes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from meshwright.agent.statistics.protobuf import message, number_of
from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire

COUNTS = st.integers(0, 2**64 - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=200)


@given(NAMES, NAMES, COUNTS, st.lists(COUNTS, max_size=12), st.floats(allow_nan=False), st.booleans())
def test_every_kind_of_field_is_as_the_library_writes_it(
    name: str, other: str, count: int, counts: list[int], amount: float, there: bool
) -> None:
    """Texts, numbers, packed numbers, amounts, messages within messages, several of them, none."""
    called = message((1, name), (2, other), (3, count & 0xFFFF))
    requests = message((1, tuple(counts)), (3, amount), (4, count))
    route = message((1, 2), (2, called), (3, other), (4, requests if there else []))
    written = message((1, name), (2, count), (3, amount), (4, []), (6, [route, route]))
    theirs = wire.Route(
        direction=wire.INBOUND,
        called=wire.Called(namespace=name, service=other, port=count & 0xFFFF),
        name=other,
        requests=wire.Requests(by_class=counts, seconds=amount, grpc_failed=count) if there else None,
    )
    expected = wire.ReportRequest(run=name, number=count, seconds=amount, routes=[theirs, theirs])
    assert wire.ReportRequest.FromString(written) == expected


@given(COUNTS, st.binary(max_size=300), st.floats(allow_nan=False), st.integers(0, 2**32 - 1))
@example(0, b"", 0.0, 0)
def test_a_number_is_found_among_other_fields(
    count: int, text: bytes, amount: float, next_after: int
) -> None:
    """A newer control plane may say more: what is not known is passed over."""
    more = message((2, count), (3, text), (4, amount))
    told = wire.ReportResponse(next_after_seconds=next_after).SerializeToString()
    assert number_of(more + told + more, 1) == next_after
    assert number_of(told + b"\x2d\x00\x00\x00\x00", 1) == next_after


@pytest.mark.parametrize(
    "written",
    [b"\x08", b"\x08\x80", b"\x12\x05ab", b"\x09\x00", b"\x0b", b"\x08" + b"\xff" * 20, b"\x2d\x00"],
)
def test_what_is_no_message_is_refused(written: bytes) -> None:
    """And nothing is read beyond its end."""
    with pytest.raises(ValueError, match="message"):
        number_of(written, 1)


def test_an_amount_of_minus_zero_is_none() -> None:
    """As no report has one."""
    assert message((3, -0.0)) == b""
