"""Tests of the feed of changes: the first list, and what the log has of outages and damaged objects."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from meshwright.kube.reflector.pacing import Pacing
from meshwright.records.contract import Changes, Record, ReplicaId, Revision
from meshwright.records.key import key_of
from meshwright.records.kubernetes.feed import CachedRecord
from meshwright.records.kubernetes.objects import object_of
from meshwright.records.kubernetes.store import KubernetesRecords
from meshwright.records.kubernetes.times import Times
from tests.tools.deadline import until
from tests.unit.kube.scripted_api import (
    ScriptedServer,
    api_of,
    bookmark,
    event,
    refusing,
    streaming,
)

TIMES: Final = Times(pacing=Pacing(first=0.01, longest=0.02, steady=0.01, short=0.0))
TOKENS: Final = key_of("tokens", "a")


def stored(*words: str, version: int) -> dict[str, Any]:
    """Return the object of a record."""
    raw = object_of(key_of(*words), b"secret", "w")
    raw["metadata"] |= {"namespace": "home", "resourceVersion": str(version)}
    return raw


async def test_outage_before_the_first_list_is_logged_and_not_delivered() -> None:
    """An empty first list means that there is nothing, so it must not be delivered for an error."""
    damaged = stored("tokens", "a", "damaged", version=3)
    damaged["spec"]["content"] = "secret!"
    script = (
        refusing(503, "ServiceUnavailable", "the server begins"),
        refusing(503, "ServiceUnavailable", "the server begins"),
        streaming(
            event("ADDED", stored("tokens", "ab", version=1)),
            event("ADDED", stored("tokens", "a", version=2)),
            event("ADDED", damaged),
            bookmark(4, end=True),
            event("DELETED", stored("tokens", "ab", version=5)),
            event("DELETED", stored("tokens", "a", version=6)),
        ),
    )
    calls: list[Changes] = []
    with structlog.testing.capture_logs() as logs:
        async with ScriptedServer(*script) as server, api_of(server) as api:
            store = KubernetesRecords(api, "home", ReplicaId("a"), lambda: datetime.now(UTC), TIMES)
            task = asyncio.create_task(store.follow(TOKENS, calls.append))
            await until(lambda: len(calls) == 2)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            selected = {asked.query["labelSelector"] for asked in server.asked}
    assert calls == [
        Changes((Record(TOKENS, b"secret", Revision("2")),)),
        Changes(removed=(TOKENS,)),
    ]
    assert selected == {"state.meshwright.dev/first-word=tokens"}
    assert [entry["event"] for entry in logs] == [
        "records may be outdated",
        "record is unreadable",
        "records are current again",
    ]
    assert "the server begins" in logs[0]["error"]
    assert "tokens.a.damaged: spec.content: expected base64" in logs[1]["error"]
    assert "secret" not in str(logs)


def test_cache_has_no_contents_after_their_delivery() -> None:
    """A cached record still differs from its next revision, and from other records."""
    raw = stored("tokens", "a", version=2)
    cached = CachedRecord(raw)
    assert cached == CachedRecord(raw)
    assert cached.pop() == Record(TOKENS, b"secret", Revision("2"))
    assert cached.pop() is None
    assert cached == CachedRecord(raw)
    assert cached != CachedRecord(stored("tokens", "a", version=3))
    assert cached != CachedRecord(stored("tokens", "b", version=2))
    kept = [getattr(cached, name) for name in CachedRecord.__slots__]
    assert sorted(map(str, kept)) == ["2", "None", "tokens/a"]
