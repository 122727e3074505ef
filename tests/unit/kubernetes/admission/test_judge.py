"""Tests of the judge of admission reviews: refusals, warnings, and answers when time runs out."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from catalog.store.view import MeshSettings
from meshwright.kubernetes.admission import judge as judging
from meshwright.kubernetes.admission import turns
from meshwright.kubernetes.admission.judge import NOT_LOOKED, NOT_READ, Judge, MeshMoment, Verdict
from meshwright.kubernetes.admission.review import parse_review
from meshwright.kubernetes.admission.trial import Trial
from meshwright.mesh.values.picture import Picture
from meshwright.providers.merge import merge
from meshwright.specs.displayed_objects import read_shown
from tests.meshes import values as a

TARGET: dict[str, Any] = {
    "apiVersion": "access.smi-spec.io/v1alpha3",
    "kind": "TrafficTarget",
    "metadata": {"name": "buy", "namespace": "default"},
    "spec": {
        "destination": {"kind": "ServiceAccount", "name": "store"},
        "rules": [{"kind": "HTTPRouteGroup", "name": "paths"}],
        "sources": [{"kind": "ServiceAccount", "name": "client"}],
    },
}
BAD: dict[str, Any] = {**TARGET, "spec": {**TARGET["spec"], "rules": [{"kind": "X", "name": "paths"}]}}
SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "store", "namespace": "default", "annotations": {"meshwright.dev/dns": "!"}},
    "spec": {"ports": [{"port": 80}]},
}


def _now() -> MeshMoment:
    things = a.objects(a.service("store"), a.workload("store-1", "10.0.0.1", app="store", account="store"))
    return MeshMoment(merge([("kubernetes", Picture(things))]), Picture())


def _trial() -> Trial:
    return Trial(MeshSettings())


@pytest.fixture
async def judged() -> AsyncIterator[Callable[..., Any]]:
    """Return a function that judges the request of a review."""
    judge = Judge("kubernetes", "here", _now, _trial)
    tidying = asyncio.create_task(judge.tidying())

    async def of(seconds: float = 60.0, **request: Any) -> Verdict:
        given = {"uid": "7", "operation": "CREATE", **request}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": given}
        return await judge.judge(parse_review(body), seconds)

    yield of
    tidying.cancel()
    await asyncio.gather(tidying, return_exceptions=True)


async def test_policy_that_cannot_be_read_is_refused(judged: Callable[..., Any]) -> None:
    """The refusal has the field, its value and the remedy."""
    result = await judged(object=BAD)
    assert result.refused.splitlines() == [
        "TrafficTarget default/buy is invalid:",
        '  - spec.rules[0].kind is "X": must be one of HTTPRouteGroup, TCPRoute (MW1013)',
    ]


async def test_dry_run_has_every_warning_of_lint(judged: Callable[..., Any]) -> None:
    """A dry run has no Events afterwards, so its answer also warns of missing objects."""
    result = await judged(object=TARGET, dryRun=True)
    assert result.refused == ""
    assert [warning.rpartition(" (")[2] for warning in result.warnings] == ["MW2001)", "MW2004)", "MW2008)"]


async def test_object_that_precedes_the_objects_it_names_has_no_warning(
    judged: Callable[..., Any],
) -> None:
    """Many manifests have this order: a TrafficTarget before its routes, a Service before its Pods."""
    split = {
        "apiVersion": "split.smi-spec.io/v1alpha2",
        "kind": "TrafficSplit",
        "metadata": {"name": "shares", "namespace": "default"},
        "spec": {
            "service": "apex",
            "backends": [{"service": "new", "weight": 90}, {"service": "old", "weight": 10}],
        },
    }
    nobody = {**SERVICE, "metadata": {"name": "later", "namespace": "default"}}
    nobody["spec"] = {"selector": {"app": "later"}, "ports": [{"port": 80, "appProtocol": "http"}]}
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "later", "namespace": "default"},
        "spec": {
            "parentRefs": [{"group": "", "kind": "Service", "name": "later"}],
            "rules": [{"backendRefs": [{"name": "gone", "port": 80}]}],
        },
    }
    for item in (TARGET, split, nobody, route):
        assert await judged(object=item) == Verdict()
        assert await judged(operation="UPDATE", object=item, oldObject=item) == Verdict()


async def test_fault_of_the_object_itself_is_a_warning_at_once(judged: Callable[..., Any]) -> None:
    """The weights are all zero, which no other object can resolve.

    The missing apex Service has no warning.
    """
    nothing = {
        "apiVersion": "split.smi-spec.io/v1alpha2",
        "kind": "TrafficSplit",
        "metadata": {"name": "shares", "namespace": "default"},
        "spec": {"service": "apex", "backends": [{"service": "store", "weight": 0}]},
    }
    assert [warning.rpartition(" (")[2] for warning in (await judged(object=nothing)).warnings] == ["MW2012)"]


async def test_unrelated_change_of_a_faulty_object_is_allowed(
    judged: Callable[..., Any],
) -> None:
    """A label or finalizer can be added: old errors are warnings. A new error is refused."""
    labelled = {**BAD, "metadata": {**BAD["metadata"], "labels": {"a": "b"}}}
    result = await judged(operation="UPDATE", object=labelled, oldObject=BAD)
    assert (result.refused, len(result.warnings)) == ("", 1)
    worse = {**BAD, "spec": {**BAD["spec"], "sources": 7}}
    assert "spec.sources" in (await judged(operation="UPDATE", object=worse, oldObject=BAD)).refused
    assert (await judged(operation="UPDATE", object=BAD, oldObject=TARGET)).refused


async def test_faulty_annotation_of_a_service_is_only_a_warning(judged: Callable[..., Any]) -> None:
    """A Service with a wrong annotation of ours is still a valid Service for Kubernetes."""
    result = await judged(object=SERVICE)
    assert result.refused == ""
    assert any("meshwright.dev/dns" in warning for warning in result.warnings)


async def test_route_of_the_gateway_api_only_gets_warnings(judged: Callable[..., Any]) -> None:
    """Its own definitions decide what a cluster accepts; routes for gateways alone are not looked at."""
    rules = [{"matches": [{"path": {"type": "RegularExpression", "value": "("}}]}]
    route: dict[str, Any] = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "store", "namespace": "default"},
        "spec": {"parentRefs": [{"group": "", "kind": "Service", "name": "store"}], "rules": rules},
    }
    result = await judged(object=route)
    assert result.refused == ""
    assert [warning.rpartition(" (")[2] for warning in result.warnings] == ["MW1014)"]
    elsewhere = {**route, "spec": {"parentRefs": [{"name": "edge"}], "rules": rules}}
    assert await judged(object=elsewhere) == Verdict()


async def test_deletion_is_never_refused(judged: Callable[..., Any]) -> None:
    """Neither references by other objects nor errors of the object prevent its deletion."""
    gone = {**SERVICE, "metadata": {"name": "store", "namespace": "default"}}
    assert (await judged(operation="DELETE", oldObject=gone)).refused == ""
    assert (await judged(operation="DELETE", oldObject=BAD)).refused == ""


async def test_other_kinds_are_allowed(judged: Callable[..., Any]) -> None:
    """A webhook registration for further kinds has no effect on them."""
    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "default"}}
    assert await judged(object=other) == Verdict()


async def test_review_without_time_for_the_trial_is_allowed_with_a_warning() -> None:
    """While the mesh is built, every review is answered in time with a warning that it was not examined.

    Later reviews are examined.
    """
    go = threading.Event()

    def slow() -> Trial:
        go.wait(60)
        return _trial()

    judge = Judge("kubernetes", "here", _now, slow)
    body = {"uid": "7", "operation": "CREATE", "object": TARGET, "dryRun": True}
    review = parse_review({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
    seconds, verdicts = 0.1, [Verdict(warnings=(NOT_READ,))]
    while any(
        NOT_READ in verdict.warnings for verdict in verdicts
    ):  # a busy machine takes longer to read them
        seconds *= 2
        verdicts = await asyncio.gather(*(judge.judge(review, seconds) for _ in range(turns.MOST_OF_ONE)))
    assert {verdict.warnings for verdict in verdicts} == {(NOT_LOOKED,)}
    assert not any(verdict.looked for verdict in verdicts)
    go.set()
    while not (late := await judge.judge(review, 60.0)).looked:  # until the earlier reviews have ended
        await asyncio.sleep(0)
    assert any("(MW2001)" in warning for warning in late.warnings)


async def test_reviews_of_one_namespace_do_not_delay_another_namespace() -> None:
    """Namespaces take turns, so that many objects of one do not delay the object of another.

    The latter is examined after one more of the waiting objects.
    """
    looked: list[str] = []
    began, go = threading.Event(), threading.Event()

    class Slow(Trial):
        def new_problems(self, source: str, key: Any, *others: Any) -> Any:
            looked.append(str(key))
            began.set()
            go.wait(60)
            return super().new_problems(source, key, *others)

    came: list[None] = []

    def now() -> MeshMoment:
        """Return the mesh, and count the reviews that take their place in the queue."""
        came.append(None)
        return _now()

    judge = Judge("kubernetes", "here", now, lambda: Slow(MeshSettings()))

    def asking(namespace: str, name: str) -> "asyncio.Task[Verdict]":
        metadata = {"name": name, "namespace": namespace}
        body = {
            "uid": "7",
            "operation": "CREATE",
            "namespace": namespace,
            "object": {**TARGET, "metadata": metadata},
        }
        review = parse_review(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body}
        )
        return asyncio.create_task(judge.judge(review, 60.0))

    many = [asking("many", "first")]
    await asyncio.to_thread(began.wait, 60)
    many += [asking("many", f"next-{number}") for number in range(5)]
    while len(came) < 6:
        await asyncio.sleep(0)
    one = asking("one", "one")
    while len(came) < 7:
        await asyncio.sleep(0)
    go.set()
    assert all(verdict.looked for verdict in await asyncio.gather(one, *many))
    assert looked[:3] == ["TrafficTarget many/first", "TrafficTarget many/next-0", "TrafficTarget one/one"]


async def test_object_that_cannot_be_read_in_time_is_allowed_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer names the missing reading, because the object was neither examined nor refused."""
    go = threading.Event()
    monkeypatch.setattr(
        "meshwright.kubernetes.admission.judge.read_shown",
        lambda *given: go.wait(60) and read_shown(*given),
    )
    judge = Judge("kubernetes", "here", _now, _trial)
    body = {"uid": "7", "operation": "CREATE", "object": BAD}
    review = parse_review({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
    assert await judge.judge(review, 0.01) == Verdict(warnings=(NOT_READ,), looked=False)
    go.set()
    assert (await judge.judge(review, 60.0)).refused


async def test_trial_mesh_is_released_after_idle_minutes() -> None:
    """The second mesh is dropped some minutes after the last review, to free memory.

    The next review builds it again.
    """
    now = [0.0]
    judge = Judge("kubernetes", "here", _now, _trial, lambda: now[0])
    body = {"uid": "7", "operation": "CREATE", "object": TARGET}
    review = parse_review({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
    assert (await judge.judge(review, 60.0)).looked
    now[0] += judging.IDLE_SECONDS
    judge.tidy()
    assert judge.values > 0
    now[0] += 1
    judge.tidy()
    assert judge.values == 0
    assert (await judge.judge(review, 60.0)).looked


async def test_internal_error_allows_the_object_and_the_next_review_works() -> None:
    """The answer warns that the object was not examined, and the second mesh is built again."""
    made: list[Trial] = []

    class Broken(Trial):
        def new_problems(self, *_: object) -> Any:
            raise ZeroDivisionError

    def new() -> Trial:
        made.append(Broken(MeshSettings()) if not made else _trial())
        return made[-1]

    judge = Judge("kubernetes", "here", _now, new)
    body = {"uid": "7", "operation": "CREATE", "object": TARGET}
    review = parse_review({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
    assert await judge.judge(review, 60.0) == Verdict(warnings=(NOT_LOOKED,), looked=False)
    assert (await judge.judge(review, 60.0)).looked
    assert len(made) == 2


async def test_waiting_reviews_get_a_new_mesh_after_an_internal_error() -> None:
    """A review must not use a mesh in a half-changed state.

    The error is logged, although its own caller has given up.
    """
    made: list[Trial] = []
    reached, go = threading.Event(), threading.Event()

    class Broken(Trial):
        def new_problems(self, *_: object) -> Any:
            reached.set()
            go.wait(60)
            raise ZeroDivisionError("sum")

    def new() -> Trial:
        made.append(Broken(MeshSettings()) if not made else _trial())
        return made[-1]

    judge = Judge("kubernetes", "here", _now, new, lambda: 0.0)
    body = {"uid": "7", "operation": "CREATE", "object": TARGET}
    review = parse_review({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
    with capture_logs() as logs:
        # On a busy machine a review may give up before it has reached the mesh.
        while not reached.is_set():
            assert not (await judge.judge(review, 0.2)).looked
        waiting = [asyncio.create_task(judge.judge(review, 60.0)) for _ in range(2)]
        while judge.waiting < 3:
            await asyncio.sleep(0)
        go.set()
        assert [verdict.looked for verdict in await asyncio.gather(*waiting)] == [True, True]
    assert [log["error"] for log in logs] == ["ZeroDivisionError: sum"]
    assert len(made) == 2
