"""Tests of Events about one object.

Each problem of a uid has one Event, whichever server writes it, and its end has another one.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from meshwright.kubernetes.status.event import EventReporter
from meshwright.kubernetes.status.events.one_object import OneObject
from meshwright.mesh.kinds import CONFIG_MAP
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from tests.unit.kube.scripted_api import Line, Part, ReceivedRequest, ScriptedServer, api_of

ABOUT = ObjectKey(CONFIG_MAP, Namespace("mesh"), "injection")
FIRST = {"name": "injection", "namespace": "mesh", "uid": "u1", "resourceVersion": "5"}


class _Events:
    """An API server that stores Events."""

    def __init__(self) -> None:
        self.made: dict[str, dict[str, Any]] = {}

    async def play(self, asked: ReceivedRequest, line: Line) -> None:
        if asked.method == "GET":
            await line.answer({"kind": "EventList", "metadata": {}, "items": list(self.made.values())})
            return
        body = json.loads(asked.body)
        if (name := body["metadata"]["name"]) in self.made:
            await line.refuse(409, "AlreadyExists", f"events {name!r} already exists")
            return
        self.made[name] = body
        await line.answer(body, 201)

    @property
    def said(self) -> list[tuple[str, str, str]]:
        """Return uid, type and note of each Event."""
        return [(item["regarding"]["uid"], item["type"], item["note"]) for item in self.made.values()]


@asynccontextmanager
async def _telling(play: Part) -> AsyncIterator[OneObject]:
    async with ScriptedServer(play) as server, api_of(server) as api:
        one = OneObject(api, ABOUT, "Refused", EventReporter("a", "mesh"), lambda: datetime.now(UTC))
        work = asyncio.create_task(one.run())
        try:
            async with asyncio.timeout(10):
                yield one
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


async def _until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0)


WRONG = ("u1", "Warning", "polcy: unknown")
MENDED = ("u1", "Normal", "Refused is resolved: polcy: unknown")


async def test_problem_has_one_event_and_its_end_another() -> None:
    """A second server with the same problem writes no second Event.

    A restarted server writes the Event of the resolution.
    """
    events = _Events()
    async with _telling(events.play) as one, _telling(events.play) as other:
        one.set_problem(FIRST, "polcy: unknown")
        await _until(lambda: events.made)
        other.set_problem(FIRST, "polcy: unknown")
        other.set_problem({**FIRST, "resourceVersion": "6"}, "polcy: unknown")
    (made,) = events.made.values()
    assert (made["reason"], made["action"], made["regarding"]["kind"]) == ("Refused", "Accept", "ConfigMap")
    async with _telling(events.play) as anew:
        anew.set_problem(FIRST, "")
        await _until(lambda: len(events.made) == 2)
    assert events.said == [WRONG, MENDED]


async def test_recreated_object_has_its_own_events() -> None:
    """An object with a new uid has a new Event.

    The old problem is not reported as resolved for a third uid.
    """
    events = _Events()
    async with _telling(events.play) as one:
        one.set_problem(FIRST, "polcy: unknown")
        await _until(lambda: len(events.made) == 1)
        one.set_problem({**FIRST, "uid": "u2"}, "polcy: unknown")
        await _until(lambda: len(events.made) == 2)
        one.set_problem({**FIRST, "uid": "u3"}, "")
    assert events.said == [WRONG, ("u2", "Warning", "polcy: unknown")]


async def test_forbidden_write_is_tried_again_with_the_next_report() -> None:
    """A 403 answer does not end the reporter."""
    events, asked = _Events(), list[str]()

    async def play(item: ReceivedRequest, line: Line) -> None:
        asked.append(item.method)
        if len(asked) == 1:
            await line.refuse(403, "Forbidden", 'x is forbidden: User "mesh" cannot list events')
        else:
            await events.play(item, line)

    async with _telling(play) as one:
        one.set_problem(FIRST, "first")
        await _until(lambda: asked)
        one.set_problem(FIRST, "polcy: unknown")
        await _until(lambda: events.made)
    assert events.said == [WRONG]
