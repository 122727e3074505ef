"""Tests of explanations for random routes of the Gateway API, against the oracle and changed manifests."""

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from random import Random

import pytest

from catalog.explain import explain, standing
from catalog.explain.enforcement import EnforcementState, concerned
from catalog.explain.remedy import remedy
from catalog.explain.sidecars import ExcludedPolicy, Sidecar
from catalog.oracle.decide import Answer, Decision, LocalReply, Request, arriving, decide
from catalog.oracle.gateway import RouteMatch, match_for
from catalog.store.inventory import by_identity
from catalog.store.view import View
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE
from tests.differential.cases import Case, case
from tests.differential.topology import Document
from tests.tools.hypothesis_profiles import examples
from tests.unit.catalog.explain.test_explain import adding, passing, read, seen
from tests.unit.conftest import MANY_SECONDS

# They decide many random requests.
pytestmark = [pytest.mark.timeout(MANY_SECONDS), pytest.mark.fuzzed]
ALL = 40
CASES = examples(8, fresh=ALL)
"""The floors below hold for ALL; fewer cases have a share of each, less ROOM."""
ROOM = 1.0 if CASES == ALL else 0.6
OF_REQUESTS = (GRPC_ROUTE, HTTP_ROUTE)


def cases() -> Iterator[tuple[int, Case]]:
    """Yield cases with routes, each with its seed."""
    for seed in range(CASES):
        yield seed, case(Random(f"routes/{seed}"), 12, routed=1.0)  # noqa: S311 - test data


def least(number: int) -> float:
    """Return a floor for CASES from one for ALL."""
    return number * ROOM * CASES / ALL


def deciding(mesh: View, request: Request) -> RouteMatch | None:
    """Return the match of a route that decides a request or connection."""
    port = mesh.services[request.service].port(request.port)
    arrived = arriving(mesh, request)
    if port is None or isinstance(arrived, LocalReply):
        return None
    return match_for(mesh, arrived, port)


def test_missing_manifests_leave_no_share_of_a_route_refused() -> None:
    """With them the only failing shares are of missing backends, or of Services without workloads."""
    mended = 0
    for seed, made in cases():
        policy = read(*made.documents)
        mesh = seen(policy)
        for request in passing(mesh, made):
            if deciding(mesh, request) is None:
                continue
            missing, before = remedy(mesh, request), decide(mesh, request)
            after = decide(seen(adding(policy, missing)) if missing else mesh, request)
            assert not any(share.refused for share in after.shares if share.weight), (seed, request)
            waits = any(not share.admitted for share in after.shares if share.weight)
            others = after.broken is not None or after.turned_down is not None or waits
            assert after.answer is Answer.ALLOWED or others or not after.shares, (seed, request)
            # No policy is proposed where it changes nothing.
            assert bool(missing) is (after.shares != before.shares), (seed, request)
            mended += bool(missing)
    assert mended > least(25)


def test_the_explanation_names_the_deciding_match() -> None:
    """One step names the deciding match, and only if a route decides."""
    named: Counter[bool] = Counter()
    for _, made in cases():
        mesh = seen(read(*made.documents))
        for request in made.requests:
            found = deciding(mesh, request)
            steps = [step.text for step in explain(mesh, request).steps]
            names = [text.partition(", decides")[0] for text in steps if ", decides the " in text]
            # A client whose sidecar does not know the Service may get no step about it.
            assert names == [] or (found is not None and names == [f"{found.key}, {place(found)}"])
            named[bool(names)] += 1
    assert named[True] > least(50)


def place(found: RouteMatch) -> str:
    """Return the field of a match, or of a rule for connections, which has none."""
    return str(found.place) if found.key.kind in OF_REQUESTS else f"spec.rules[{found.rule}]"


def test_a_sidecar_without_a_match_decides_as_without_it_in_the_route() -> None:
    """The real decision is that of a mesh in which the deciding match fits no request."""
    counted: Counter[EnforcementState] = Counter()
    for seed, made in cases():
        mesh = seen(read(*made.documents))
        for request in made.requests:
            found = deciding(mesh, request)
            if found is None or found.key.kind not in OF_REQUESTS or request.identity is None:
                continue
            decision = decide(mesh, request)
            without = (ExcludedPolicy(found.key, found.place, "no"),)
            callers = {workload.proxy_name for workload in by_identity(mesh).lookup(request.identity)}
            sidecars = {
                name: Sidecar("", without if name in callers else ())
                for name in concerned(mesh, request, decision)
            }
            seen_there = standing(mesh, request, decision, sidecars)
            other = seen(read(*never(made.documents, found)))
            expected = decide(other, request)
            counted[seen_there.in_force] += 1
            if seen_there.in_force is not EnforcementState.UNKNOWN:
                assert shown(seen_there.decision) == shown(expected), (seed, request)
    assert counted[EnforcementState.NO] > least(50)
    assert counted[EnforcementState.YES] == 0, "a missing match is never silent"


def shown(decision: Decision) -> Decision:
    """Return a decision without the deciding objects, which the other mesh may have under another key."""
    return replace(decision, because=())


def never(documents: tuple[Document, ...], found: RouteMatch) -> tuple[Document, ...]:
    """Return the manifests in which a match of a route fits no request of the cases."""
    result = deepcopy(documents)
    (route,) = (
        item
        for item in result
        if (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"])
        == (found.key.kind.name, found.key.namespace, found.key.name)
    )
    rule = route["spec"]["rules"][found.rule]
    matches = rule.setdefault("matches", [{}])
    matches[found.match].setdefault("headers", []).append({"name": "x-never", "value": "given"})
    return result
