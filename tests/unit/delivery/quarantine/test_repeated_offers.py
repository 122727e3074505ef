"""Tests of repeated offers: the pauses before refused units, and the stored verdicts."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.policy.units import UnitId
from meshwright.delivery.quarantine import verdicts
from meshwright.delivery.quarantine.record import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, SPREAD, pause
from meshwright.delivery.quarantine.verdicts import LIMIT, Verdict, VerdictsError
from xds.cache import NodeKey
from xds.protocol.resources.resource import ROUTE, ResourceName

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _verdict(proxy: str = "a.shop.default", times: int = 2) -> Verdict:
    name = ResourceName("rds-inbound.80")
    return Verdict(NodeKey(proxy), UnitId("0" * 32), ROUTE, name, "match it", "bad regex", times, NOW)


def test_pauses_double_from_ten_seconds_to_ten_minutes() -> None:
    """The pause has no jitter here, and any number of refusals is valid."""
    assert [pause(times, 0.0) for times in range(1, 10)] == [10, 20, 40, 80, 160, 320, 600, 600, 600]
    assert pause(10_000, 0.0) == LONGEST_PAUSE_SECONDS, "no number is too large"


@given(st.integers(1, 100), st.floats(0, 1))
def test_jitter_makes_a_pause_shorter_by_a_fifth_at_most(times: int, jitter: float) -> None:
    """A pause is never longer than without jitter."""
    assert (1 - SPREAD) * FIRST_PAUSE_SECONDS <= (1 - SPREAD) * pause(times, 0.0) <= pause(times, jitter)
    assert pause(times, jitter) <= pause(times, 0.0)


def test_verdicts_are_read_as_they_were_written() -> None:
    """The next start of a server reads the file."""
    result = (_verdict("a.shop.default"), _verdict("b.shop.default", 7))
    assert verdicts.read(verdicts.written(result)) == result


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "not of version 1"),
        ({"verdicts": {}}, "verdicts is not a list"),
        ({"verdicts": ["x"]}, r"verdicts\[0\] must have all of these texts: "),
        ({"verdicts": [{"proxy": 1}]}, r"verdicts\[0\] must have all of these texts: "),
        ({"times": 0}, r"verdicts\[0\].times is not a number from 1"),
        ({"times": True}, r"verdicts\[0\].times is not a number from 1"),
        ({"at": "soon"}, r"verdicts\[0\].at is not a date"),
    ],
)
def test_invalid_verdict_file_is_refused_with_the_cause(change: dict[str, object], said: str) -> None:
    """The file may be edited by hand, or cut off."""
    document = json.loads(verdicts.written((_verdict(),)))
    if change.keys() & {"times", "at"}:
        document["verdicts"][0] |= change
    else:
        document |= change
    with pytest.raises(VerdictsError, match=said):
        verdicts.read(json.dumps(document).encode())
    with pytest.raises(VerdictsError, match="not JSON"):
        verdicts.read(b"{")


def test_number_of_stored_verdicts_is_limited() -> None:
    """In a mesh where every proxy refuses something, a start must not read a huge file."""
    result = [_verdict(f"p{number}.shop.default") for number in range(LIMIT + 5)]
    assert len(verdicts.read(verdicts.written(result))) == LIMIT
