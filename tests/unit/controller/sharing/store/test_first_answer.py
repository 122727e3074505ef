"""Tests of a start that waits for the first answer of the shared store."""

import threading

import pytest
from structlog.testing import capture_logs

from certs.errors import StateError
from meshwright.controller.sharing.store.domains import DOMAINS, IDENTITY
from meshwright.controller.sharing.store.first_answer import wait_for_store
from meshwright.controller.sharing.store.store_thread import StoreThread
from meshwright.records.contract import Record, RecordsError, ReplicaId, StoreUnavailableError
from meshwright.records.key import Key
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.records.recovery.store import HealedRecords
from tests.tools.deadline import wait_until
from tests.tools.shared_records import FaultyRecords
from tests.unit.records.recovery.lossy_memory import NOW


def _store() -> tuple[FaultyRecords, HealedRecords]:
    """Return a store, and the one that heals it."""
    records = FaultyRecords(MemoryRecords(Memory(), ReplicaId("a")))
    return records, HealedRecords(records, ReplicaId("a"), DOMAINS, IDENTITY, lambda: NOW)


def test_first_start_waits_until_the_store_answers() -> None:
    """It says so once, and goes on without a restart."""
    records, healed = _store()
    records.is_away = True
    thread = StoreThread()
    with capture_logs() as logs:
        waiting = threading.Thread(target=wait_for_store, args=(thread, healed))
        waiting.start()
        wait_until(lambda: logs, 10)
        assert waiting.is_alive()
        records.is_away = False
        waiting.join(10)
    assert not waiting.is_alive()
    assert [log["event"] for log in logs] == ["waiting for the shared store"]
    thread.close()


def test_refusals_right_after_a_wait_are_no_end() -> None:
    """An API server that has just started refuses everybody until it has read the roles."""
    records, healed = _store()
    read, answers = records.read, [StoreUnavailableError("away"), RecordsError("RBAC grants no `get`")]

    async def refused_at_first(key: Key) -> Record | None:
        if answers:
            raise answers.pop(0)
        return await read(key)

    records.read = refused_at_first  # type: ignore[method-assign]
    thread = StoreThread()
    with capture_logs() as logs:
        wait_for_store(thread, healed)
    assert (answers, [log["reason"] for log in logs]) == ([], ["away"])
    thread.close()


def test_waiting_ends_with_the_server() -> None:
    """A server that is stopped meanwhile does not wait for the store."""
    records, healed = _store()
    records.is_away = True
    thread, errors = StoreThread(), list[str]()

    def wait() -> None:
        with pytest.raises(StateError) as ended:
            wait_for_store(thread, healed)
        errors.append(str(ended.value))

    with capture_logs() as logs:
        waiting = threading.Thread(target=wait)
        waiting.start()
        wait_until(lambda: logs, 10)
        thread.close()
        waiting.join(10)
    assert errors == ["the shared store cannot be used: the event loop of the store has ended"]


def test_store_that_refuses_ends_the_start() -> None:
    """A missing permission does not go away by waiting."""
    records, healed = _store()

    async def refused(_: object) -> None:
        raise RecordsError("RBAC grants no `get`")

    records.read = refused  # type: ignore[method-assign, assignment]
    thread = StoreThread()
    with pytest.raises(StateError, match="the shared store cannot be used: RBAC grants no `get`"):
        wait_for_store(thread, healed)
    thread.close()
