"""Tests of the acceptance matrix: it is complete, and its judgements can fail."""

from collections import Counter

import pytest

from demo import matrix
from demo.display.verdicts import CellResult, Verdict, controls
from demo.matrix import CELLS, PHASES
from demo.topology import BOOKBUYER, BOOKTHIEF, STORE_V1, STORE_V2


def test_every_row_has_a_cell_for_every_phase() -> None:
    """There are nine phases, and each row has nine cells."""
    assert [phase.name for phase in PHASES] == list("ABCDEFGHI")
    assert {len(cell) for cell, _ in CELLS} == {len(PHASES)}
    assert {character for cell, _ in CELLS for character in cell} == {"+", "-"}
    assert len({request.label for _, request in CELLS}) == len(CELLS)


def test_every_denied_row_is_served_in_some_phase() -> None:
    """A denial without a phase in which the same request is served would prove nothing."""
    assert matrix.uncontrolled() == ()


def test_row_that_is_denied_in_every_phase_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check names the row, so it can fail."""
    request = CELLS[0][1]
    monkeypatch.setattr(matrix, "CELLS", (("-" * len(PHASES), request),))
    assert matrix.uncontrolled() == (request.label,)


def test_matrix_agrees_with_the_outcomes_of_osm_demo() -> None:
    """The rows of buyer and thief are, phase by phase, as OSM's demo documents them."""
    rows = {request.label: cell for cell, request in CELLS}
    assert rows["bookbuyer → bookstore: GET /buy-a-book/new"] == "+-+++++++"
    assert rows["bookthief → bookstore: GET /buy-a-book/new"] == "+--+-----"


def test_every_manifest_variant_of_a_phase_exists() -> None:
    """Each phase names existing files."""
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
def test_split_fits_within_five_percentage_points_of_3000_requests(
    observed: dict[str, int], fits: bool
) -> None:
    """A larger difference, fewer requests or another server does not fit."""
    assert matrix.split_fits({STORE_V1.name: 50, STORE_V2.name: 50}, observed) is fits


def test_version_of_weight_zero_may_sell_no_book() -> None:
    """A single purchase from it fails the check."""
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
def test_cell_is_judged_by_the_client_and_the_server_counts(
    results: dict[str, int], counted: int, served: bool, denied: bool
) -> None:
    """A served cell needs the server's count, and a denied cell needs its zero.

    Transport faults are neither.
    """
    result = CellResult(Counter(results), counted)
    assert (result.is_served(10), result.is_denied(10)) == (served, denied)


def test_denied_row_counts_only_if_its_request_was_served() -> None:
    """The control holds only if some phase observed the service."""
    labels = [request.label for cell, request in CELLS if "-" in cell]
    good = [Verdict("A", label, "served", "10 x 200", holds=True) for label in labels]
    assert all(verdict.holds for verdict in controls(good))
    bad = [Verdict("A", labels[0], "served", "10 x 503", holds=False), *good[1:]]
    assert [verdict.holds for verdict in controls(bad)] == [False] + [True] * (len(labels) - 1)


def test_buyer_and_thief_have_a_row_for_their_own_loop() -> None:
    """Each of them is judged by its continuous calls."""
    for place in (BOOKBUYER, BOOKTHIEF):
        assert any(request.source is place and "book/new" in request.path for _, request in CELLS)
