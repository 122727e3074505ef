"""The acceptance matrix is complete, and its judgements can fail."""

from collections import Counter

import pytest

from demo import matrix
from demo.display.verdicts import CellResult, Verdict, controls
from demo.matrix import CELLS, PHASES
from demo.topology import BOOKBUYER, BOOKTHIEF, STORE_V1, STORE_V2


def test_every_row_has_a_cell_for_every_phase() -> None:
    """Nine phases, and in each row nine cells."""
    assert [phase.name for phase in PHASES] == list("ABCDEFGHI")
    assert {len(cell) for cell, _ in CELLS} == {len(PHASES)}
    assert {character for cell, _ in CELLS for character in cell} == {"+", "-"}
    assert len({request.label for _, request in CELLS}) == len(CELLS)


def test_every_denied_row_is_served_somewhere() -> None:
    """No denial stands without a phase in which the same request is served."""
    assert matrix.uncontrolled() == ()


def test_an_uncontrolled_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is denied everywhere is named."""
    request = CELLS[0][1]
    monkeypatch.setattr(matrix, "CELLS", (("-" * len(PHASES), request),))
    assert matrix.uncontrolled() == (request.label,)


def test_the_table_agrees_with_the_published_outcomes() -> None:
    """Buyer and thief, phase by phase, as OSM's demo documents them."""
    rows = {request.label: cell for cell, request in CELLS}
    assert rows["bookbuyer → bookstore: GET /buy-a-book/new"] == "+-+++++++"
    assert rows["bookthief → bookstore: GET /buy-a-book/new"] == "+--+-----"


def test_every_variant_is_there() -> None:
    """Each phase names files that exist."""
    from demo.manifests import CHANGING, SOURCE

    for phase in PHASES:
        assert set(phase.manifests) <= set(CHANGING)
        assert all((SOURCE / variant).is_file() for variant in phase.manifests.values())


@pytest.mark.parametrize(
    ("observed", "fits"),
    [
        ({STORE_V1.name: 1500, STORE_V2.name: 1500}, True),
        ({STORE_V1.name: 1649, STORE_V2.name: 1351}, True),
        ({STORE_V1.name: 1651, STORE_V2.name: 1349}, False),
        ({STORE_V1.name: 500, STORE_V2.name: 500}, False),
        ({STORE_V1.name: 1500, STORE_V2.name: 1500, "other": 1}, False),
    ],
)
def test_split_is_judged_by_five_points_of_all_requests(observed: dict[str, int], fits: bool) -> None:
    """Within ±5 points of 3000 requests holds; outside, too few, or from elsewhere does not."""
    assert matrix.split_fits({STORE_V1.name: 50, STORE_V2.name: 50}, observed) is fits


def test_a_share_of_nothing_is_nothing() -> None:
    """A single purchase from a version of weight 0 fails."""
    expected = {STORE_V1.name: 0, STORE_V2.name: 100}
    assert matrix.split_fits(expected, {STORE_V2.name: 3000})
    assert not matrix.split_fits(expected, {STORE_V1.name: 1, STORE_V2.name: 2999})


@pytest.mark.parametrize(
    ("results", "counted", "served", "denied"),
    [
        ({"200": 10}, 10, True, False),
        ({"ok": 10}, 10, True, False),
        ({"200": 10}, 9, False, False),
        ({"200": 9, "403": 1}, 9, False, False),
        ({"403": 10}, 0, False, True),
        ({"refused": 4, "closed": 3, "reset": 3}, 0, False, True),
        ({"403": 10}, 1, False, False),
        ({"timeout": 10}, 0, False, False),
        ({"unresolved": 10}, 0, False, False),
        ({"502": 10}, 0, False, False),
        ({"403": 9}, 0, False, False),
        ({}, 0, False, False),
    ],
)
def test_both_sides_judge(results: dict[str, int], counted: int, served: bool, denied: bool) -> None:
    """Served needs the server's count, denied its zero; faults of the way are neither."""
    result = CellResult(Counter(results), counted)
    assert (result.is_served(10), result.is_denied(10)) == (served, denied)


def test_controls_need_an_observed_service() -> None:
    """A denied row counts only if some phase really served it."""
    labels = [request.label for cell, request in CELLS if "-" in cell]
    good = [Verdict("A", label, "served", "10 x 200", holds=True) for label in labels]
    assert all(verdict.holds for verdict in controls(good))
    bad = [Verdict("A", labels[0], "served", "10 x 503", holds=False), *good[1:]]
    assert [verdict.holds for verdict in controls(bad)] == [False] + [True] * (len(labels) - 1)


def test_the_standing_clients_have_rows() -> None:
    """Buyer and thief each have the row by which their standing loop is judged."""
    for place in (BOOKBUYER, BOOKTHIEF):
        assert any(request.source is place and "book/new" in request.path for _, request in CELLS)
