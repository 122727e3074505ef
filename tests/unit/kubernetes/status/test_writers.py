"""Tests of the writers of Events and conditions, with an API server that accepts or refuses writes."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

import meshwright.kubernetes.status.events.writer
from meshwright.kube.api import Api
from meshwright.kube.resource import Resource
from meshwright.kubernetes.status import event as events
from meshwright.kubernetes.status.attempts import Attempts, WritePostponed
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.conditions.writer import FIRST, StatusWriter
from meshwright.kubernetes.status.event import EventReporter
from meshwright.kubernetes.status.events.writer import EventWriter
from meshwright.kubernetes.status.object_status import ObjectStatusTable
from meshwright.mesh.kinds import NAMESPACE, TRAFFIC_TARGET, WORKLOAD, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity
from tests.meshes import values as a
from tests.unit.kube.scripted_api import Line, Part, ReceivedRequest, ScriptedServer, api_of, refusing
from tests.unit.kubernetes.status.test_attempts import RecordingMeter

SHOP = Namespace("shop")
TARGET = ObjectKey(TRAFFIC_TARGET, SHOP, "buyers")
HERE = InCluster("east", "7", 2)
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def answering(uid: str) -> Part:
    """Return a part of an API server that accepts every write, and returns the object that is requested."""

    async def play(asked: ReceivedRequest, line: Line) -> None:
        sent = {} if asked.method == "GET" else json.loads(asked.body)
        metadata = {"name": "buyers", "namespace": SHOP, "uid": uid, "resourceVersion": "1"}
        item = {**sent, "metadata": metadata}
        await line.answer({"kind": "List", "metadata": {}, "items": [item]} if not sent else item)

    return play


taking = answering("u")


@pytest.fixture
async def played() -> AsyncIterator[tuple[ScriptedServer, Api]]:
    """Return an API server and a client of it."""
    async with ScriptedServer(taking) as server, api_of(server) as api:
        yield server, api


async def served(kind: Kind) -> Resource:
    """Return the resource of a kind."""
    return Resource(kind.group, "v1", f"{kind.name.lower()}s", kind.name)


def problem(number: int) -> Problem:
    """Return one of the object's problems."""
    return Problem(
        code="MW2001",
        severity=Severity.ERROR,
        origin=HERE,
        key=TARGET,
        field=f"spec.rules[{number}]",
        expected="must be there",
    )


def cluster(api: Api, standing: ObjectStatusTable) -> Cluster:
    """Return the writers' view of the cluster."""
    return Cluster(api, served, standing, lambda: NOW, EventReporter("a", "home"))


def attempts() -> Attempts:
    """Return a maker of requests with a fixed clock."""
    return Attempts(RecordingMeter(), lambda: 0.5, lambda: 0.0)


@pytest.mark.parametrize("per_minute", [2.0, 6000.0])
async def test_one_object_with_many_problems_has_a_limited_number_of_events(
    played: tuple[ScriptedServer, Api], monkeypatch: pytest.MonkeyPatch, per_minute: float
) -> None:
    """The limit holds at any write rate.

    The namespace has a report due, which counts the omitted problems.
    """
    monkeypatch.setattr(meshwright.kubernetes.status.events.writer, "OPEN", 5)
    monkeypatch.setattr(meshwright.kubernetes.status.events.writer, "A_MINUTE", per_minute)
    server, api = played
    standing = ObjectStatusTable("east", {WORKLOAD})
    standing.apply_problems({problem(number): True for number in range(20)})
    standing.take()
    writer = EventWriter(cluster(api, standing), attempts(), 0.0)
    at: float | None = 0.0
    for _ in range(100):
        try:
            await writer.report(TARGET, at or 0.0)
            break
        except WritePostponed as error:
            at = error.until
    assert sum(item.method == "POST" for item in server.asked) == 5
    assert standing.take() == (ObjectKey(NAMESPACE, Namespace(""), SHOP),)


async def test_events_from_before_a_restart_count_against_the_limit(
    played: tuple[ScriptedServer, Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count does not depend on the order of objects. A resolved problem makes room for another Event."""
    monkeypatch.setattr(meshwright.kubernetes.status.events.writer, "OPEN", 5)
    server, api = played
    other = ObjectKey(TRAFFIC_TARGET, SHOP, "sellers")
    notices = [events.notice(other, replace(problem(number), key=other)) for number in range(6)]
    written_events = [events.begun(notice, "u", NOW) for notice in (*notices, notices[-1].mended())]
    result = [
        events.body(written_event, "access.smi-spec.io/v1alpha4", {}, EventReporter("b", "home"))
        for written_event in written_events
    ]

    async def listing(asked: ReceivedRequest, line: Line) -> None:
        await line.answer({"kind": "EventList", "metadata": {}, "items": result})

    server.then(listing, taking)
    standing = ObjectStatusTable("east", {WORKLOAD})
    writer = EventWriter(cluster(api, standing), attempts(), 0.0)
    await writer.remember(None)
    standing.apply_problems({problem(number): True for number in range(20)})
    await writer.report(TARGET, 0.0)
    assert not any(item.method == "POST" for item in server.asked)
    standing.take()
    await writer.report(other, 0.0)
    assert TARGET in standing.take(), "nothing is wrong with the other any more"
    await writer.report(TARGET, 0.0)
    assert sum(item.method == "POST" for item in server.asked) == 5


async def test_conflicting_write_of_conditions_is_retried(
    played: tuple[ScriptedServer, Api],
) -> None:
    """A 409 answer postpones the write of this object, and the next attempt succeeds."""
    server, api = played
    server.then(refusing(409, "Conflict", "the object has been modified"), taking)
    till = ObjectKey(WORKLOAD, SHOP, "till")
    standing = ObjectStatusTable("east", {WORKLOAD})
    standing.apply_edits({till: SourcedObject(till, a.workload("till", "10.0.0.1"), HERE)})
    writer = StatusWriter(cluster(api, standing), lambda _: None, attempts(), 0.0)
    with pytest.raises(WritePostponed) as raised:
        await writer.report(till, 100.0)
    assert (raised.value.until, raised.value.is_refused) == (100.0 + FIRST, True)
    await writer.report(till, raised.value.until)
    written: list[Any] = [item.method for item in server.asked]
    assert written == ["PATCH", "PATCH"]


async def test_object_that_is_deleted_and_created_again_gets_its_conditions_and_events(
    played: tuple[ScriptedServer, Api],
) -> None:
    """Both changes may be read together: name, generation and problems are those of the earlier object."""
    server, api = played
    till = ObjectKey(WORKLOAD, SHOP, "till")
    standing = ObjectStatusTable("east", {WORKLOAD})
    statuses = StatusWriter(cluster(api, standing), lambda _: None, attempts(), 0.0)
    about = EventWriter(cluster(api, standing), attempts(), 0.0)
    written = []
    for uid in ("u", "u", "v"):
        origin = replace(HERE, uid=uid)
        standing.apply_problems(dict.fromkeys(standing.problems(TARGET), False))
        standing.apply_problems({replace(problem(1), origin=origin): True})
        standing.apply_edits({till: SourcedObject(till, a.workload("till", "10.0.0.1"), origin)})
        server.asked.clear()
        server.then(answering(uid))
        await statuses.report(till, 100.0)
        await about.report(TARGET, 100.0)
        written.append([item.method for item in server.asked if item.method != "GET"])
    assert written == [["PATCH", "POST"], [], ["PATCH", "POST"]]
