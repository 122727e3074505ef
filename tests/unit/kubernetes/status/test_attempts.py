"""Writes that fail: what is refused bars its own kind, what is away bars everything for a while."""

from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from meshwright.kube.errors import ApiError, ApiUnreachable, KubeError
from meshwright.kubernetes.status.attempts import BARRED, FIRST, Attempts, Budget, WritePostponed, WrittenKind


class Counted:
    """A meter that remembers."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def reported(self, what: WrittenKind, failed: str = "") -> None:
        """Remember it."""
        self.said.append((what.value, failed))

    def reporting(self, *, leads: bool) -> None:
        """Take no notice."""


class Clock:
    """A clock that is set."""

    now = 100.0

    def __call__(self) -> float:
        """Return what it is set to."""
        return self.now


def refusal(status: int, reason: str = "", retry_after: float | None = None) -> ApiError:
    """Make what an API server refuses with."""
    return ApiError(
        status, reason, "no", verb="create", resource="events", what="events x", retry_after=retry_after
    )


def failing(error: KubeError) -> Callable[[], Awaitable[None]]:
    """Return a request that fails."""

    async def request() -> None:
        raise error

    return request


async def fine() -> str:
    """Answer."""
    return "done"


async def test_what_is_refused_is_said_once_and_everything_else_goes_on() -> None:
    """RBAC that lacks a verb: it is tried again after a while."""
    meter, clock = Counted(), Clock()
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
    assert [each["reason"] for each in logs] == ["forbidden"]
    assert meter.said == [("event", "forbidden"), ("status", ""), ("event", "forbidden")]


@pytest.mark.parametrize(
    "refused", [refusal(403), ApiError(404, "", "", verb="list", resource="x", what="x")]
)
async def test_what_a_server_that_has_just_begun_refuses_is_tried_again_soon(refused: ApiError) -> None:
    """It has not read its roles yet, or its kinds; one that goes on to refuse is asked ever less often."""
    clock = Clock()
    attempts, pauses = Attempts(Counted(), lambda: 0.5, clock), []
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


async def test_a_server_that_is_away_is_left_alone_for_longer_and_longer() -> None:
    """Whatever was to be asked of it."""
    meter, clock = Counted(), Clock()
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


async def test_an_object_that_is_not_there_is_no_failure() -> None:
    """Nor is one that is there already: whoever asked knows what that means."""
    meter = Counted()
    attempts = Attempts(meter, lambda: 0.5, Clock())
    for status, reason in ((404, "NotFound"), (409, "AlreadyExists")):
        with pytest.raises(ApiError):
            await attempts.make(WrittenKind.EVENT, "create events", failing(refusal(status, reason)))
    assert meter.said == []


def test_a_budget_is_so_many_a_minute_and_no_more_at_once() -> None:
    """Once it is used up it is waited until some can be written together."""
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
async def test_what_is_about_one_object_bars_that_object_alone(
    status: int, reason: str, message: str
) -> None:
    """Others of its kind are written, in its own namespace as well; it is tried again later."""
    clock = Clock()
    attempts = Attempts(Counted(), lambda: 0.5, clock)
    refused = ApiError(status, reason, message, verb="create", resource="events", what="events")
    with capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(WritePostponed) as raised:
                await attempts.make(WrittenKind.EVENT, "create events", failing(refused), *BUY)
            assert (raised.value.until, raised.value.is_refused) == (clock.now + BARRED, True)
    assert [each["of"] for each in logs] == [BUY[-1]]
    assert await attempts.make(WrittenKind.EVENT, "create events", fine, *SELL) == "done"
    clock.now += BARRED
    assert await attempts.make(WrittenKind.EVENT, "create events", fine, *BUY) == "done"


async def test_what_may_not_be_done_in_one_namespace_is_done_in_others() -> None:
    """A role binds a namespace: it is said of one that lacks it, and once, however many lack it."""
    attempts = Attempts(Counted(), lambda: 0.5, Clock())
    denied = ApiError(403, "Forbidden", DENIED, verb="create", resource="events", what="events")
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


async def test_what_is_barred_no_more_is_forgotten() -> None:
    """Objects come and go, and some of them are refused."""
    clock = Clock()
    attempts = Attempts(Counted(), lambda: 0.5, clock)
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
