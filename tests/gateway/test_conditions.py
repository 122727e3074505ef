"""All cases of conditions of Gateway API routes, from the one derivation that status and traffic read."""

from dataclasses import replace

import pytest

from catalog.store.gateway import route_of
from catalog.store.view import View
from meshwright.providers.directory.manifests import Manifests
from tests.gateway.case_files import Case, Document, cases
from tests.gateway.conditions import condition_differences, route_keys
from tests.gateway.running_cases import read_edited, read_first, view_of
from tests.gateway.topology import Topology

_ACTIVE = tuple(case for case in cases() if not case.pending)


_REFUSED = tuple(case for case in _ACTIVE if case.refused)
_TOPOLOGY = Topology.of_cases(_ACTIVE)


@pytest.fixture(scope="module")
def first() -> Manifests:
    """Return what was read of all cases."""
    return read_first(_TOPOLOGY, _ACTIVE)


@pytest.fixture(scope="module")
def views(first: Manifests) -> tuple[View, View]:
    """Return the view of all cases, and the one after all edits."""
    return view_of(first), view_of(read_edited(first, _ACTIVE))


@pytest.mark.parametrize("case", [case for case in _ACTIVE if case.first.status], ids=str)
def test_routes_of_the_case_get_the_expected_conditions(views: tuple[View, View], case: Case) -> None:
    """Every condition that the case names has the status and reason that the specification demands."""
    failures = condition_differences(views[0], case, case.first)
    if failures:
        pytest.fail("\n".join((str(case), *failures)), pytrace=False)


@pytest.mark.parametrize("case", [case for case in _ACTIVE if case.edited and case.edited.status], ids=str)
def test_conditions_follow_the_edit_of_the_case(views: tuple[View, View], case: Case) -> None:
    """After the edit the conditions are those of the new objects."""
    failures = condition_differences(views[1], case, case.last)
    if failures:
        pytest.fail("\n".join((str(case), *failures)), pytrace=False)


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        (
            {"Accepted": "False NoMatchingParent"},
            "Accepted False NoMatchingParent expected, True Accepted seen",
        ),
        ({"ResolvedRefs": "True ResolvedRefs"}, "True ResolvedRefs expected, False BackendNotFound seen"),
        ({"parent": "other"}, "1 entries for {'parent': 'other'} expected, 0 seen"),
        ({"none": True}, "0 entries for {'none': True} expected, 1 seen"),
    ],
)
def test_a_wrong_condition_is_named(views: tuple[View, View], wanted: Document, named: str) -> None:
    """A comparison that could not fail would prove nothing."""
    (case,) = (case for case in _ACTIVE if case.name == "weight-missing-service")
    (difference,) = condition_differences(views[0], case, replace(case.first, status=(wanted,)))
    assert difference.endswith(named)


@pytest.mark.parametrize("case", _REFUSED, ids=str)
def test_objects_that_a_cluster_refuses_are_refused_from_files(case: Case) -> None:
    """The reader reports a problem about the route of the case."""
    assert read_edited(read_first(_TOPOLOGY, (case,)), (case,)).problems()


def test_all_other_routes_are_read(views: tuple[View, View]) -> None:
    """No case is wrong because a reader refuses a route that an API server takes."""
    good = (case for case in _ACTIVE if not case.refused)
    stages = [(view, stage) for case in good for view, stage in zip(views, case.stages, strict=False)]
    missing = [key for view, stage in stages for key in route_keys(stage) if route_of(view, key) is None]
    assert not missing, f"not read: {', '.join(map(str, missing))}"
