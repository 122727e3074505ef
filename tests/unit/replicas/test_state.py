"""Tests of the state that each server announces to the others."""

import pytest

from meshwright.records.contract import Epoch
from meshwright.replicas.state import ReplicaState, UnreadableStateError


def test_state_is_read_as_it_was_announced() -> None:
    """All facts arrive, also those that are not ASCII."""
    state = ReplicaState(
        version="0.2.0",
        started_at="2026-11-30T05:00:00+00:00",
        peer_address="[fd00::1]:15132",
        is_ready=True,
        is_stopping=True,
        streams=1500,
        epoch=Epoch(3),
        inputs="9f0c",
        authority="77aa",
        holdouts=("é.cart.shop",),
        records={"proxies": 3, "services": 2},
    )
    assert ReplicaState.decode(state.encode()) == state


def test_servers_of_other_versions_understand_each_other() -> None:
    """A fact of a newer version is ignored, and a fact that is missing has its default."""
    assert ReplicaState.decode(b'{"version": "9.0", "colour": [1], "streams": 2}') == ReplicaState(
        version="9.0", streams=2
    )


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "state: Invalid JSON: EOF while parsing a value at line 1 column 0"),
        (b"[]", "state: Input should be an object"),
        (b'{"streams": "many"}', "streams: Input should be a valid integer"),
        (b'{"records": {"proxies": true}}', "records.proxies: Input should be a valid integer"),
    ],
)
def test_error_names_the_fact(content: bytes, error: str) -> None:
    """A state of another program is refused with the fact that is wrong."""
    with pytest.raises(UnreadableStateError) as raised:
        ReplicaState.decode(content)
    assert str(raised.value) == error
