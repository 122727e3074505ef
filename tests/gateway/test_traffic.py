"""All cases of routes of the Gateway API, answered by real Envoys."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.gateway.case_files import Case, cases
from tests.gateway.running_cases import RunningCases

# All calls are made before the first test, which may take minutes where the machine is busy.
pytestmark = [pytest.mark.envoy, pytest.mark.timeout(900)]

_WAITED = "initial fetch timed out"
"""Envoy waits 15 s for resources of its first start; a busy machine takes longer to send hundreds of them."""

_CASES = cases()
_ACTIVE = tuple(case for case in _CASES if not case.pending)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningCases]:
    """All cases in one mesh, after all calls."""
    async with AsyncExitStack() as ends:
        running = await RunningCases.start(tmp_path_factory.mktemp("gateway"), _ACTIVE, ends)
        await running.run(ends)
        yield running


@pytest.mark.parametrize(
    "case", [case for case in _ACTIVE if any(stage.calls for stage in case.stages)], ids=str
)
def test_calls_of_the_case_get_the_expected_answers(mesh: RunningCases, case: Case) -> None:
    """Every call of the case has the answer that the specification requires."""
    failures = mesh.failures(case)
    if failures:
        # A trace of calls would hide the lines about the requests.
        pytest.fail("\n".join((str(case), *failures)), pytrace=False)


@pytest.mark.asyncio(loop_scope="module")
async def test_envoys_accept_all_cases(mesh: RunningCases) -> None:
    """No Envoy rejects a resource, or logs more than that its first resources came late."""
    complaints = (await mesh.live.complaints()).splitlines()
    assert [line for line in complaints if _WAITED not in line] == []
