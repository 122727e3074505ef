"""How two states of a mesh differ."""

from hypothesis import given
from hypothesis import strategies as st

from catalog.store.edits import Known, difference
from mesh.endpoints import Inventory
from mesh.names import Namespace
from mesh.objects import EndpointSlice

ONE = [EndpointSlice("s", Namespace("n"), name, (), ()) for name in "abcdefg"]


def _known(chosen: list[EndpointSlice]) -> Known:
    return Known.of({}, Inventory.of(slices=chosen))


@given(st.lists(st.sampled_from(ONE), unique=True), st.lists(st.sampled_from(ONE), unique=True))
def test_edits_lead_from_one_to_the_other(before: list[EndpointSlice], after: list[EndpointSlice]) -> None:
    """In whatever order either is, and nothing is named that did not change."""
    edits = difference(_known(before), _known(after)).slices
    assert {key for key, value in edits.items() if value is None} == set(before) - set(after)
    assert {key for key, value in edits.items() if value is not None} == set(after) - set(before)


def test_the_same_is_no_edit() -> None:
    """Nor are equal values in another order."""
    assert not difference(_known(ONE), _known(list(reversed(ONE))))
    assert difference(_known(ONE), _known(ONE[1:]))
