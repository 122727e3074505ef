"""All cases of conditions of Gateway API routes, from the one derivation that status and traffic read."""

import pytest

from catalog.store.view import View
from tests.gateway.case_files import Case, cases
from tests.gateway.conditions import condition_differences
from tests.gateway.running_cases import read_cases
from tests.gateway.topology import Topology

_ACTIVE = tuple(case for case in cases() if not case.pending)


@pytest.fixture(scope="module")
def view() -> View:
    """Return the view of a mesh with the objects of all cases."""
    return read_cases(Topology(()), _ACTIVE).view


@pytest.mark.parametrize("case", [case for case in _ACTIVE if case.status], ids=str)
def test_routes_of_the_case_get_the_expected_conditions(view: View, case: Case) -> None:
    """Every condition that the case names has the status and reason that the specification demands."""
    failures = condition_differences(view, case)
    assert not failures, "\n".join((str(case), *failures))


@pytest.mark.parametrize("case", [case for case in _ACTIVE if case.refused], ids=str)
def test_objects_that_a_cluster_refuses_are_refused_from_files(case: Case) -> None:
    """The reader reports a problem about the route of the case."""
    assert read_cases(Topology(()), (case,)).problems


def test_all_other_objects_are_read_without_a_problem() -> None:
    """No case is wrong because a reader refuses an object that an API server takes."""
    read = read_cases(Topology(()), tuple(case for case in _ACTIVE if not case.refused))
    assert not read.problems, "\n".join(read.problems)
