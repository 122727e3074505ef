"""Tests of the store's answers to an API server that refuses, is silent, or breaks connections."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from meshwright.records.contract import (
    Record,
    RecordsError,
    ReplicaId,
    Revision,
    StoreUnavailableError,
    WriteConflictError,
)
from meshwright.records.key import key_of
from meshwright.records.kubernetes.objects import UnreadableObjectError, object_of
from meshwright.records.kubernetes.store import KubernetesRecords
from meshwright.records.kubernetes.times import Times
from tests.unit.kube.scripted_api import (
    Line,
    Part,
    ReceivedRequest,
    ScriptedServer,
    answering,
    api_of,
    refusing,
)

CART: Final = key_of("proxies", "shop", "cart")
OBJECTS: Final = "/apis/state.meshwright.dev/v1alpha1/namespaces/home/records"
PATH: Final = f"{OBJECTS}/proxies.shop.cart"
TIMES: Final = Times(read=20.0, write=20.0)

Act = Callable[[KubernetesRecords], Awaitable[object]]


def stored(content: bytes, version: int) -> dict[str, Any]:
    """Return the object of the record."""
    raw = object_of(CART, content, "w")
    raw["metadata"] |= {"namespace": "home", "resourceVersion": str(version)}
    return raw


async def create(store: KubernetesRecords) -> object:
    """Create the record."""
    return await store.write(CART, b"secret", None)


async def replace(store: KubernetesRecords) -> object:
    """Replace the record of revision 7."""
    return await store.write(CART, b"secret", Revision("7"))


async def remove(store: KubernetesRecords) -> object:
    """Remove the record of revision 7."""
    await store.remove(CART, Revision("7"))
    return None


async def read(store: KubernetesRecords) -> object:
    """Read the record."""
    return await store.read(CART)


@contextlib.asynccontextmanager
async def answered_by(
    *script: Part, times: Times = TIMES
) -> AsyncIterator[tuple[KubernetesRecords, ScriptedServer]]:
    """Yield a store on a scripted API server."""
    async with ScriptedServer(*script) as server, api_of(server) as api:
        yield KubernetesRecords(api, "home", ReplicaId("a"), lambda: datetime.now(UTC), times), server


async def cut(_: ReceivedRequest, line: Line) -> None:
    """Break the connection, after the request has arrived."""
    line.cut()


async def silent(_: ReceivedRequest, line: Line) -> None:
    """Keep the connection open, and send nothing."""
    await line.hang()


GONE = refusing(404, "NotFound", 'records.state.meshwright.dev "proxies.shop.cart" not found')
EXISTS = refusing(409, "AlreadyExists", 'records.state.meshwright.dev "proxies.shop.cart" already exists')
OTHER = refusing(409, "Conflict", "the object has been modified; please apply your changes")
UNAVAILABLE: Final[dict[str, Part]] = {
    "broken connection": cut,
    "etcd is slow": refusing(500, "InternalError", "etcdserver: request timed out"),
    "API server begins": refusing(503, "ServiceUnavailable", "the server is currently unable"),
    "deadline of the API server": refusing(504, "Timeout", "request did not complete within 60s"),
    "too many requests": refusing(429, "TooManyRequests", "please try again later"),
    "redirect": answering({}, 302),
}
REFUSED: Final[dict[str, Part]] = {
    "no permission": refusing(403, "Forbidden", 'records is forbidden: User "x" cannot get resource'),
    "no credentials": refusing(401, "Unauthorized", "Unauthorized"),
    "not served": refusing(404, "NotFound", "the server could not find the requested resource"),
    "invalid": refusing(422, "Invalid", "spec.key: Required value"),
}


@pytest.mark.parametrize("act", [read, create, replace, remove])
@pytest.mark.parametrize("answer", UNAVAILABLE.values(), ids=UNAVAILABLE)
async def test_answer_that_may_change_is_an_unavailable_store(answer: Part, act: Act) -> None:
    """The call may be done or not, or a later one is answered otherwise; the error has no content."""
    async with answered_by(answer) as (store, _):
        with pytest.raises(StoreUnavailableError) as caught:
            await act(store)
        assert "secret" not in repr(caught.value)
        assert "c2VjcmV0" not in repr(caught.value)


@pytest.mark.parametrize("act", [read, create, replace, remove])
@pytest.mark.parametrize("answer", REFUSED.values(), ids=REFUSED)
async def test_lasting_refusal_is_an_error_of_the_store(answer: Part, act: Act) -> None:
    """A missing permission or definition is neither a missing record nor an outage."""
    async with answered_by(answer) as (store, server):
        with pytest.raises(RecordsError) as caught:
            await act(store)
        assert type(caught.value) is RecordsError
        assert len(server.asked) == 1


@pytest.mark.parametrize("act", [read, create, replace, remove])
async def test_silent_api_server_is_unavailable_after_the_time_limit(act: Act) -> None:
    """The sentence names the server and the limit."""
    times = Times(read=0.02, write=0.02)
    async with answered_by(silent, times=times) as (store, server):
        with pytest.raises(StoreUnavailableError) as caught:
            await act(store)
        assert str(caught.value) == f"the API server at {server.url} did not answer within 0.02 s"


async def test_missing_object_reads_as_no_record() -> None:
    """The request has no resourceVersion, so that the API server answers with the newest object."""
    async with answered_by(GONE) as (store, server):
        assert await store.read(CART) is None
        [asked] = server.asked
        assert (asked.method, asked.path, asked.query) == ("GET", PATH, {})


async def test_damaged_object_is_not_read() -> None:
    """A caller must not take the record for a missing one, and replace it."""
    async with answered_by(answering({**stored(b"x", 7), "spec": {"key": CART, "content": "!"}})) as (
        store,
        _,
    ):
        with pytest.raises(UnreadableObjectError, match=r"spec\.content: expected base64"):
            await store.read(CART)


@pytest.mark.parametrize(
    ("act", "refusal"),
    [(create, EXISTS), (replace, OTHER), (replace, GONE), (remove, OTHER), (remove, GONE)],
)
@pytest.mark.parametrize(
    ("now", "current"),
    [(answering(stored(b"other", 9)), Record(CART, b"other", Revision("9"))), (GONE, None)],
)
async def test_conflict_has_the_present_record(
    act: Act, refusal: Part, now: Part, current: Record | None
) -> None:
    """The record is read after the refusal, and may be gone by then, or there again."""
    async with answered_by(refusal, now) as (store, server):
        with pytest.raises(WriteConflictError) as caught:
            await act(store)
        assert caught.value.current == current
        assert [asked.method for asked in server.asked][1:] == ["GET"]


async def test_conflict_without_the_present_record_is_an_unavailable_store() -> None:
    """The caller cannot go on without the record."""
    async with answered_by(OTHER, cut) as (store, _):
        with pytest.raises(StoreUnavailableError):
            await replace(store)


@pytest.mark.parametrize(
    "refusal",
    [
        refusing(404, "NotFound", 'namespaces "home" not found'),
        refusing(403, "Forbidden", "namespace home: unable to create, because it is being terminated"),
        refusing(403, "Forbidden", "exceeded quota: records, requested: 1, used: 9, limited: 9"),
    ],
)
async def test_namespace_without_room_is_no_conflict(refusal: Part) -> None:
    """A missing or ending namespace, or a quota, refuses every later attempt too."""
    async with answered_by(refusal) as (store, _):
        with pytest.raises(RecordsError) as caught:
            await create(store)
        assert type(caught.value) is RecordsError


@pytest.mark.parametrize("act", [create, replace])
async def test_write_on_a_broken_connection_is_sent_once(act: Act) -> None:
    """A repeated write would be refused as a conflict with itself, after the first one was done."""
    async with answered_by(answering(stored(b"x", 7)), cut, answering(stored(b"secret", 8))) as (
        store,
        server,
    ):
        await store.read(CART)
        with pytest.raises(StoreUnavailableError):
            await act(store)
        assert len(server.asked) == 2, "the connection was kept, and broke at the second request"


async def test_requests_of_writes_name_the_revision() -> None:
    """The API server compares: by the name of a new object, and by the resourceVersion of others."""
    async with answered_by(
        answering(stored(b"secret", 7)), answering(stored(b"secret", 8)), answering({"kind": "Status"})
    ) as (store, server):
        assert await create(store) == Record(CART, b"secret", Revision("7"))
        assert await replace(store) == Record(CART, b"secret", Revision("8"))
        await remove(store)
        created, replaced, removed = server.asked
        assert (created.method, created.path) == ("POST", OBJECTS)
        assert (replaced.method, replaced.path) == ("PATCH", PATH)
        assert b'"resourceVersion": "7"' in replaced.body
        assert ("content-type", "application/merge-patch+json") in replaced.headers
        assert (removed.method, removed.path) == ("DELETE", PATH)
        assert removed.body == b'{"preconditions": {"resourceVersion": "7"}}'
