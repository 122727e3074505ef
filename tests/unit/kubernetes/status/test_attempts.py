"""Tests of failed writes: a refusal bars one kind of write, an unreachable server bars all."""

from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from meshwright.kube.errors import ApiError, ApiUnreachable, KubeError
from meshwright.kubernetes.status.attempts import BARRED, FIRST, Attempts, Budget, WritePostponed, WrittenKind


class RecordingMeter:
    """A meter that records the reports."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def reported(self, what: WrittenKind, failed: str = "") -> None:
        """Record the report."""
        self.said.append((what.value, failed))

    def reporting(self, *, leads: bool) -> None:
        """Ignore the call."""


class Clock:
    """A clock that tests set."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time that was set."""
        return self.now


def refusal(status: int, reason: str = "", retry_after: float | None = None) -> ApiError:
    """Return the error of a refused request."""
    return ApiError(
        status,
        reason,
        "no",
        verb="create",
        resource="events",
        object_text="events x",
        retry_after=retry_after,
    )


def failing(error: KubeError) -> Callable[[], Awaitable[None]]:
    """Return a request that fails with this error."""

    async def request() -> None:
        raise error

    return request


async def fine() -> str:
    """Succeed."""
    return "done"


async def test_refused_kind_of_write_is_logged_once_and_other_kinds_continue() -> None:
    """If RBAC lacks a verb, only that kind is postponed. It is tried again after a pause, and logged once."""
    meter, clock = RecordingMeter(), Clock()
    attempts = Attempts(meter, lambda: 0.5, clock)
    with capture_logs() as logs:
        for _ in range(3):
            with pytest.raises(WritePostponed) as raised:
                await attempts.make(WrittenKind.EVENT, "create events", failing(refusal(403)))
            assert (raised.value.until, raised.value.is_refused) == (clock.now + FIRST, True)
        assert await attempts.make(WrittenKind.STATUS, "apply workloads", fine, writes=True) == "done"
        clock.now += FIRST
        with pytest.raises(WritePostponed):
            await attempts.make(WrittenKind.EVENT, "create events", failing(refusal(403)))
    assert [log["reason"] for log in logs] == ["forbidden"]
    assert meter.said == [("event", "forbidden"), ("status", ""), ("event", "forbidden")]


@pytest.mark.parametrize(
    "refused", [refusal(403), ApiError(404, "", "", verb="list", resource="x", object_text="x")]
)
async def test_refusals_of_a_starting_server_are_retried_soon_and_then_less_often(refused: ApiError) -> None:
    """A server that starts has not read its roles or kinds yet.

    Pauses grow from at most 5 s to the maximum, and begin small again after a success.
    """
    clock = Clock()
    attempts, pauses = Attempts(RecordingMeter(), lambda: 0.5, clock), []
    for _ in range(9):
        with pytest.raises(WritePostponed) as raised:
            await attempts.make(WrittenKind.EVENT, "create events", failing(refused), "shop")
        pauses.append(raised.value.until - clock.now)
        clock.now = raised.value.until
    assert pauses[0] <= 5.0
    assert pauses == sorted(pauses)
    assert pauses[-1] == BARRED
    assert await attempts.make(WrittenKind.EVENT, "create events", fine, "shop") == "done"
    with pytest.raises(WritePostponed) as raised:
        await attempts.make(WrittenKind.EVENT, "create events", failing(refused), "shop")
    assert raised.value.until == clock.now + FIRST, "it was right meanwhile"


async def test_unreachable_server_postpones_all_writes_with_growing_pauses() -> None:
    """Writes of every kind wait. A Retry-After header sets the pause instead."""
    meter, clock = RecordingMeter(), Clock()
    attempts = Attempts(meter, lambda: 1.0, clock)
    pauses = []
    for _ in range(3):
        with pytest.raises(WritePostponed) as raised:
            await attempts.make(WrittenKind.EVENT, "create events", failing(ApiUnreachable("nobody")))
        with pytest.raises(WritePostponed) as other:
            await attempts.make(WrittenKind.STATUS, "apply workloads", fine)
        assert other.value.until == raised.value.until
        assert not raised.value.is_refused
        pauses.append(raised.value.until - clock.now)
        clock.now = raised.value.until
    assert pauses == sorted(pauses)
    assert await attempts.make(WrittenKind.STATUS, "apply workloads", fine) == "done"
    with pytest.raises(WritePostponed) as raised:
        await attempts.make(WrittenKind.STATUS, "apply workloads", failing(refusal(429, retry_after=20.0)))
    assert raised.value.until == clock.now + 20.0


async def test_missing_and_existing_objects_are_no_failures() -> None:
    """NotFound and AlreadyExists reach the caller, who knows their meaning; the meter counts no failure."""
    meter = RecordingMeter()
    attempts = Attempts(meter, lambda: 0.5, Clock())
    for status, reason in ((404, "NotFound"), (409, "AlreadyExists")):
        with pytest.raises(ApiError):
            await attempts.make(WrittenKind.EVENT, "create events", failing(refusal(status, reason)))
    assert meter.said == []


def test_budget_limits_writes_in_a_minute_and_in_a_burst() -> None:
    """An exhausted budget postpones writes by more than a second, so that some can be written together."""
    budget, written, now = Budget(60.0, 60.0), 0, 0.0
    waits: list[float] = []
    while now < 600.0:
        try:
            budget.take(now)
        except WritePostponed as error:
            waits.append(error.until - now)
            now = error.until
        else:
            written += 1
    assert 60 + 580 <= written <= 60 + 600
    assert min(waits) > 1.0


BUY, SELL = ("shop", "TrafficTarget shop/buy"), ("shop", "TrafficTarget shop/sell")
DENIED = (
    'events.events.k8s.io is forbidden: User "mesh" cannot create resource "events" in the namespace "shop"'
)


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (422, "Invalid", 'Event "buy.1" is invalid: note: can have at most 1024 bytes'),
        (413, "RequestEntityTooLarge", "etcdserver: request is too large"),
        (403, "Forbidden", 'admission webhook "w" denied the request: no'),
        (500, "InternalError", 'Internal error occurred: failed calling webhook "w": no route to host'),
        (403, "Forbidden", 'events "buy.1" is forbidden: exceeded quota: few, requested: count/events=1'),
        (500, "InternalError", 'admission webhook "w" denied the request: whatever'),
        (409, "Conflict", 'admission webhook "w" denied the request: whatever'),
        (401, "Unauthorized", "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"),
    ],
)
async def test_refusal_about_one_object_bars_only_that_object(status: int, reason: str, message: str) -> None:
    """Other objects of the kind are written, also in the same namespace.

    The refused object is tried again later.
    """
    clock = Clock()
    attempts = Attempts(RecordingMeter(), lambda: 0.5, clock)
    refused = ApiError(status, reason, message, verb="create", resource="events", object_text="events")
    with capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(WritePostponed) as raised:
                await attempts.make(WrittenKind.EVENT, "create events", failing(refused), *BUY)
            assert (raised.value.until, raised.value.is_refused) == (clock.now + BARRED, True)
    assert [log["of"] for log in logs] == [BUY[-1]]
    assert await attempts.make(WrittenKind.EVENT, "create events", fine, *SELL) == "done"
    clock.now += BARRED
    assert await attempts.make(WrittenKind.EVENT, "create events", fine, *BUY) == "done"


async def test_forbidden_namespace_leaves_other_namespaces_writable() -> None:
    """A Role is valid in one namespace, so other namespaces are still written.

    The refusal is logged once, however many namespaces lack the Role.
    """
    attempts = Attempts(RecordingMeter(), lambda: 0.5, Clock())
    denied = ApiError(403, "Forbidden", DENIED, verb="create", resource="events", object_text="events")
    with capture_logs() as logs:
        for namespace in ("shop", "other"):
            with pytest.raises(WritePostponed):
                await attempts.make(
                    WrittenKind.EVENT, "create events", failing(denied), namespace, "Service a"
                )
            with pytest.raises(WritePostponed):
                await attempts.make(WrittenKind.EVENT, "create events", fine, namespace, "Service b")
            assert (
                await attempts.make(WrittenKind.EVENT, "create events", fine, "third", "Service c") == "done"
            )
    assert len(logs) == 1


async def test_expired_bars_of_objects_are_forgotten() -> None:
    """Memory stays bounded while refused objects come and go. The refusal is logged again each hour."""
    clock = Clock()
    attempts = Attempts(RecordingMeter(), lambda: 0.5, clock)
    with capture_logs() as logs:
        for number in range(50):
            with pytest.raises(WritePostponed):
                await attempts.make(
                    WrittenKind.EVENT,
                    "create events",
                    failing(refusal(422, "Invalid")),
                    "shop",
                    f"Service s-{number}",
                )
            clock.now += BARRED
        assert len(attempts._barred) <= 2
    assert len(logs) == 50 * BARRED // 3600 + 1, "said again each hour"
