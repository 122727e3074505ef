"""Reviews judged: what is refused, what is warned of, and what happens when there is no time."""

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
from meshwright.kubernetes.admission.review import asked
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
    """Return what judges the request of a review."""
    judge = Judge("kubernetes", "here", _now, _trial)
    tidying = asyncio.create_task(judge.tidying())

    async def of(seconds: float = 60.0, **request: Any) -> Verdict:
        given = {"uid": "7", "operation": "CREATE", **request}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": given}
        return await judge.judge(asked(body), seconds)

    yield of
    tidying.cancel()
    await asyncio.gather(tidying, return_exceptions=True)


async def test_policy_that_cannot_be_read_is_refused(judged: Callable[..., Any]) -> None:
    """With field, value and remedy."""
    found = await judged(object=BAD)
    assert found.refused.splitlines() == [
        "TrafficTarget default/buy is invalid:",
        '  - spec.rules[0].kind is "X": must be one of HTTPRouteGroup, TCPRoute (MW1013)',
    ]


async def test_a_dry_run_is_warned_of_all_that_lint_would_say(judged: Callable[..., Any]) -> None:
    """No Event follows a dry run, so what is missing is told with it."""
    found = await judged(object=TARGET, dryRun=True)
    assert found.refused == ""
    assert [each.rpartition(" (")[2] for each in found.warnings] == ["MW2001)", "MW2004)", "MW2008)"]


async def test_an_object_that_names_others_before_they_come_has_no_warning(
    judged: Callable[..., Any],
) -> None:
    """The order of many manifests: a TrafficTarget before its routes, a Service before its Pods."""
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
    for each in (TARGET, split, nobody):
        assert await judged(object=each) == Verdict()
        assert await judged(operation="UPDATE", object=each, oldObject=each) == Verdict()


async def test_what_is_wrong_in_an_object_itself_is_told_at_once(judged: Callable[..., Any]) -> None:
    """Weights that are all zero, beside an apex that is only missing, which is left out."""
    nothing = {
        "apiVersion": "split.smi-spec.io/v1alpha2",
        "kind": "TrafficSplit",
        "metadata": {"name": "shares", "namespace": "default"},
        "spec": {"service": "apex", "backends": [{"service": "store", "weight": 0}]},
    }
    assert [each.rpartition(" (")[2] for each in (await judged(object=nothing)).warnings] == ["MW2012)"]


async def test_what_was_wrong_before_does_not_hold_up_who_changes_something_else(
    judged: Callable[..., Any],
) -> None:
    """A label, a finalizer: the errors are warned of; a new one is refused."""
    labelled = {**BAD, "metadata": {**BAD["metadata"], "labels": {"a": "b"}}}
    found = await judged(operation="UPDATE", object=labelled, oldObject=BAD)
    assert (found.refused, len(found.warnings)) == ("", 1)
    worse = {**BAD, "spec": {**BAD["spec"], "sources": 7}}
    assert "spec.sources" in (await judged(operation="UPDATE", object=worse, oldObject=BAD)).refused
    assert (await judged(operation="UPDATE", object=BAD, oldObject=TARGET)).refused


async def test_what_kubernetes_runs_on_is_only_warned_of(judged: Callable[..., Any]) -> None:
    """A Service with an annotation of ours that is wrong is still a Service."""
    found = await judged(object=SERVICE)
    assert found.refused == ""
    assert any("meshwright.dev/dns" in each for each in found.warnings)


async def test_an_object_that_goes_is_never_refused(judged: Callable[..., Any]) -> None:
    """That others name it is warned of."""
    gone = {**SERVICE, "metadata": {"name": "store", "namespace": "default"}}
    assert (await judged(operation="DELETE", oldObject=gone)).refused == ""
    assert (await judged(operation="DELETE", oldObject=BAD)).refused == ""


async def test_other_kinds_pass(judged: Callable[..., Any]) -> None:
    """Whatever somebody has the API server ask."""
    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "default"}}
    assert await judged(object=other) == Verdict()


async def test_without_time_it_is_said_that_nobody_looked() -> None:
    """While the mesh is built, others are answered as well; later there is time."""
    go = threading.Event()

    def slow() -> Trial:
        go.wait(60)
        return _trial()

    judge = Judge("kubernetes", "here", _now, slow)
    body = {"uid": "7", "operation": "CREATE", "object": TARGET, "dryRun": True}
    review = asked({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
    seconds, found = 0.1, [Verdict(warnings=(NOT_READ,))]
    while any(NOT_READ in each.warnings for each in found):  # a busy machine takes longer to read them
        seconds *= 2
        found = await asyncio.gather(*(judge.judge(review, seconds) for _ in range(turns.MOST_OF_ONE)))
    assert {each.warnings for each in found} == {(NOT_LOOKED,)}
    assert not any(each.looked for each in found)
    go.set()
    while not (late := await judge.judge(review, 60.0)).looked:  # until those before have had their turn
        await asyncio.sleep(0)
    assert any("(MW2001)" in each for each in late.warnings)


async def test_one_client_s_reviews_do_not_hold_up_another_s() -> None:
    """Many objects of one namespace wait: the one of another namespace is looked at second, and not last."""
    looked: list[str] = []
    began, go = threading.Event(), threading.Event()

    class Slow(Trial):
        def of(self, source: str, key: Any, *others: Any) -> Any:
            looked.append(str(key))
            began.set()
            go.wait(60)
            return super().of(source, key, *others)

    came: list[None] = []

    def now() -> MeshMoment:
        """Tell the mesh of the moment: asked of each review that takes its place in the queue."""
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
        review = asked({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
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
    assert all(each.looked for each in await asyncio.gather(one, *many))
    assert looked[:3] == ["TrafficTarget many/first", "TrafficTarget many/next-0", "TrafficTarget one/one"]


async def test_without_time_to_read_an_object_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is let through with a warning: nobody has refused it, and nobody has looked at it."""
    go = threading.Event()
    monkeypatch.setattr(
        "meshwright.kubernetes.admission.judge.read_shown",
        lambda *given: go.wait(60) and read_shown(*given),
    )
    judge = Judge("kubernetes", "here", _now, _trial)
    body = {"uid": "7", "operation": "CREATE", "object": BAD}
    review = asked({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
    assert await judge.judge(review, 0.01) == Verdict(warnings=(NOT_READ,), looked=False)
    go.set()
    assert (await judge.judge(review, 60.0)).refused


async def test_the_second_mesh_is_forgotten_when_nobody_asks() -> None:
    """Some minutes after the last who did; the next one has it made anew."""
    now = [0.0]
    judge = Judge("kubernetes", "here", _now, _trial, lambda: now[0])
    body = {"uid": "7", "operation": "CREATE", "object": TARGET}
    review = asked({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
    assert (await judge.judge(review, 60.0)).looked
    now[0] += judging.IDLE_SECONDS
    judge.tidy()
    assert judge.values > 0
    now[0] += 1
    judge.tidy()
    assert judge.values == 0
    assert (await judge.judge(review, 60.0)).looked


async def test_a_fault_of_ours_refuses_nothing_and_is_over_with_the_next_review() -> None:
    """It is logged, and the second mesh is made anew."""
    made: list[Trial] = []

    class Broken(Trial):
        def of(self, *_: object) -> Any:
            raise ZeroDivisionError

    def new() -> Trial:
        made.append(Broken(MeshSettings()) if not made else _trial())
        return made[-1]

    judge = Judge("kubernetes", "here", _now, new)
    body = {"uid": "7", "operation": "CREATE", "object": TARGET}
    review = asked({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
    assert await judge.judge(review, 60.0) == Verdict(warnings=(NOT_LOOKED,), looked=False)
    assert (await judge.judge(review, 60.0)).looked
    assert len(made) == 2


async def test_who_waits_while_a_fault_of_ours_happens_gets_a_mesh_made_anew() -> None:
    """Not the one in whatever state it was left; and the fault is logged, though nobody waits any more."""
    made: list[Trial] = []
    go = threading.Event()

    class Broken(Trial):
        def of(self, *_: object) -> Any:
            go.wait(60)
            raise ZeroDivisionError("sum")

    def new() -> Trial:
        made.append(Broken(MeshSettings()) if not made else _trial())
        return made[-1]

    # By a clock that stands: the first comes in time to the thread, however slow the machine is.
    judge = Judge("kubernetes", "here", _now, new, lambda: 0.0)
    body = {"uid": "7", "operation": "CREATE", "object": TARGET}
    review = asked({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
    with capture_logs() as logs:
        assert not (await judge.judge(review, 0.2)).looked
        waiting = [asyncio.create_task(judge.judge(review, 60.0)) for _ in range(2)]
        while judge.waiting < 3:
            await asyncio.sleep(0)
        go.set()
        assert [each.looked for each in await asyncio.gather(*waiting)] == [True, True]
    assert [each["error"] for each in logs] == ["ZeroDivisionError: sum"]
    assert len(made) == 2
