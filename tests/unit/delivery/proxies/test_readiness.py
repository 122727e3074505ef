"""Tests of endpoint readiness: admission by mode and streams, remembered in the ledger."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog

from catalog.store.settings import Admission, EndpointAdmission
from certs.errors import StateError
from certs.ledger.contract import Ledger
from certs.ledger.entry import LedgerEntry
from certs.ledger.progress import Progress
from certs.ledger.sqlite import SqliteLedger
from meshwright.delivery.proxies import readiness
from meshwright.delivery.proxies.readiness import EndpointReadiness, admission
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceName
from xds.cache import NodeKey
from xds.protocol.resources.resource import CLUSTER, LISTENER

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
ONE, TWO = (ProxyName(ProxyUuid(uuid), ServiceName("shop"), Namespace("default")) for uuid in ("u1", "u2"))
READY, IDENTITY, OFF = EndpointAdmission.READY, EndpointAdmission.IDENTITY, EndpointAdmission.OFF


def node(name: ProxyName) -> NodeKey:
    """Return a proxy's node key."""
    return NodeKey(str(name))


def issue(ledger: Ledger, serial: str, name: ProxyName, *, claimed: bool = True) -> None:
    """Record a certificate, by default one that its proxy has claimed."""
    ledger.record(LedgerEntry.issued(serial, name, NOW, NOW + timedelta(days=365)))
    if claimed:
        ledger.claim(serial, NOW)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Return a ledger with two proxies that have connected."""
    with SqliteLedger.open(tmp_path / "ledger.db") as opened:
        issue(opened, "1", ONE)
        issue(opened, "2", TWO)
        yield opened


def admitted(readiness: EndpointReadiness) -> list[ProxyName]:
    """Return the admitted proxies."""
    return [name for name, result in readiness.admissions().items() if result is Admission.ADMITTED]


@contextlib.asynccontextmanager
async def running(
    readiness: EndpointReadiness, ledger: Ledger
) -> AsyncIterator[asyncio.Queue[list[ProxyName]]]:
    """Run `readiness`; yield a queue of the admitted proxies after each change."""
    changes: asyncio.Queue[list[ProxyName]] = asyncio.Queue()
    task = asyncio.create_task(
        readiness.run(ledger, lambda: NOW, lambda: changes.put_nowait(admitted(readiness)))
    )
    try:
        async with asyncio.timeout(60):
            yield changes
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (OFF, [None, None, None]),
        (IDENTITY, [None, Admission.ADMITTED, Admission.ADMITTED]),
        (READY, [None, None, Admission.ADMITTED]),
    ],
)
def test_mode_sets_the_progress_that_admits_a_proxy(
    mode: EndpointAdmission, expected: list[Admission | None]
) -> None:
    """Identity mode needs a claimed certificate, ready mode listeners, and mode off admits none.

    A proxy whose certificates were revoked is withdrawn in each mode.
    """
    assert [admission(mode, progress) for progress in Progress] == [Admission.WITHDRAWN, *expected]


@pytest.mark.parametrize("mode", EndpointAdmission)
def test_revoked_proxy_is_withdrawn_in_every_mode(ledger: Ledger, mode: EndpointAdmission) -> None:
    """The proxy must connect with another certificate; the issuance alone is not enough."""

    async def scenario() -> None:
        ledger.admit((ONE, TWO), NOW)
        readiness = EndpointReadiness(ledger.entries(), mode)
        async with running(readiness, ledger) as changes:
            readiness.revoked(ledger.revoke("1", NOW))
            await changes.get()
            assert readiness.admissions()[ONE] is Admission.WITHDRAWN
            later = NOW + timedelta(days=1)
            ledger.record(LedgerEntry.issued("1c", ONE, later, later + timedelta(days=1)))
            for again in (readiness, EndpointReadiness(ledger.entries(), mode)):
                assert again.admissions()[ONE] is Admission.WITHDRAWN
            ledger.claim("1c", later)
            readiness.opened(node(ONE))
            readiness.acknowledged(node(ONE), LISTENER)
            while readiness.admissions().get(ONE) is Admission.WITHDRAWN:
                await changes.get()

    asyncio.run(scenario())
    assert EndpointReadiness(ledger.entries(), OFF).admissions() == {}


def test_first_acknowledged_listeners_admit_a_proxy(ledger: Ledger) -> None:
    """A stream or clusters are not enough, and a second acknowledgement changes nothing.

    Another server reads the admission from the ledger.
    """

    async def scenario() -> None:
        readiness = EndpointReadiness(ledger.entries(), READY)
        assert admitted(readiness) == []
        async with running(readiness, ledger) as changes:
            readiness.opened(node(ONE))
            readiness.acknowledged(node(ONE), CLUSTER)
            readiness.acknowledged(node(ONE), LISTENER)
            assert await changes.get() == [ONE]
            readiness.acknowledged(node(ONE), LISTENER)
            readiness.acknowledged(node(TWO), LISTENER)
            assert await changes.get() == [ONE, TWO]
        assert changes.empty()

    asyncio.run(scenario())
    assert admitted(EndpointReadiness(ledger.entries(), READY)) == [ONE, TWO]


def test_changes_by_another_server_are_taken_from_the_ledger(ledger: Ledger) -> None:
    """An admission there admits the proxy here, and a revocation there withdraws the proxy here."""

    async def scenario() -> None:
        readiness = EndpointReadiness(ledger.entries(), READY)
        async with running(readiness, ledger) as changes:
            ledger.admit((ONE,), NOW)
            readiness.heard(ledger.entries_of(ONE))
            assert await changes.get() == [ONE]
            readiness.heard((ledger.revoke("1", NOW),))
            assert await changes.get() == []
        assert readiness.admissions()[ONE] is Admission.WITHDRAWN

    asyncio.run(scenario())


def test_stream_admits_a_proxy_in_identity_mode(ledger: Ledger) -> None:
    """A stream needs a claimed certificate; a proxy that never claimed one is not admitted."""
    issue(
        ledger,
        "3",
        new := ProxyName(ProxyUuid("u3"), ServiceName("shop"), Namespace("default")),
        claimed=False,
    )

    async def scenario() -> None:
        readiness = EndpointReadiness(ledger.entries(), IDENTITY)
        assert admitted(readiness) == [ONE, TWO]
        async with running(readiness, ledger) as changes:
            ledger.claim("3", NOW)
            readiness.opened(node(new))
            assert await changes.get() == [ONE, TWO, new]

    asyncio.run(scenario())


def test_readiness_is_recorded_in_mode_off_without_effect(ledger: Ledger) -> None:
    """After a later switch to ready mode, the proxies that were ready are admitted."""

    async def scenario() -> None:
        readiness = EndpointReadiness(ledger.entries(), OFF)
        async with running(readiness, ledger) as changes:
            readiness.acknowledged(node(ONE), LISTENER)
            while ledger.entries_of(ONE)[0].admitted_at is None:
                await asyncio.sleep(0)
            assert changes.empty()

    asyncio.run(scenario())
    assert admitted(EndpointReadiness(ledger.entries(), READY)) == [ONE]


def test_late_acknowledgement_does_not_undo_a_withdrawal(ledger: Ledger) -> None:
    """The revocation of the last certificate withdraws a proxy, but its stream may still answer."""
    issue(ledger, "1b", ONE, claimed=False)

    async def scenario() -> None:
        ledger.admit((ONE, TWO), NOW)
        readiness = EndpointReadiness(ledger.entries(), READY)
        async with running(readiness, ledger) as changes:
            readiness.revoked(ledger.revoke("1", NOW))
            readiness.revoked(ledger.revoke("1b", NOW))
            assert await changes.get() == [TWO]
            readiness.acknowledged(node(ONE), LISTENER)
            readiness.revoked(ledger.revoke("2", NOW))
            assert await changes.get() == []

    asyncio.run(scenario())


def test_proxy_with_another_certificate_stays_admitted_after_a_revocation(ledger: Ledger) -> None:
    """The remaining certificate keeps the workload admitted."""
    issue(ledger, "1b", ONE, claimed=False)
    ledger.admit((ONE, TWO), NOW)
    ledger.revoke("1", NOW)
    assert admitted(EndpointReadiness(ledger.entries(), READY)) == [ONE, TWO]


def test_admissions_during_a_pause_share_a_transaction(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first admission is written at once, and the ten that follow are written together."""
    written: list[int] = []
    write, pause = ledger.admit, asyncio.Event()

    def admit(names: Iterable[ProxyName], now: datetime) -> None:
        written.append(len(list(names)))
        write(names, now)

    async def paused(seconds: float) -> None:
        assert seconds == readiness.PAUSE_SECONDS
        await pause.wait()

    async def scenario() -> None:
        here = EndpointReadiness(ledger.entries(), READY)
        async with running(here, ledger) as changes:
            here.acknowledged(node(ONE), LISTENER)
            assert await changes.get() == [ONE]
            for proxy_name in more:
                here.acknowledged(node(proxy_name), LISTENER)
                await asyncio.to_thread(int)
            pause.set()
            assert await changes.get() == [ONE, *more]

    more = [
        ProxyName(ProxyUuid(f"u{number}"), ServiceName("shop"), Namespace("default"))
        for number in range(10, 20)
    ]
    for number, proxy_name in enumerate(more):
        issue(ledger, f"a{number}", proxy_name)
    monkeypatch.setattr(ledger, "admit", admit)
    monkeypatch.setattr(asyncio, "sleep", paused)
    asyncio.run(scenario())
    assert written == [1, 10]


def test_failed_write_of_an_admission_is_logged_and_repeated(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No admission may be lost because of, for example, a full disk."""
    monkeypatch.setattr(readiness, "RETRY_SECONDS", 0.0)
    write, left = ledger.admit, [StateError("the disk is full")]

    def failing(*arguments: object) -> None:
        if left:
            raise left.pop()
        write(*arguments)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(ledger, "admit", failing)

    async def scenario() -> None:
        readiness = EndpointReadiness(ledger.entries(), READY)
        async with running(readiness, ledger) as changes:
            readiness.acknowledged(node(ONE), LISTENER)
            assert await changes.get() == [ONE]

    with structlog.testing.capture_logs() as logs:
        asyncio.run(scenario())
    assert [(log["event"], log.get("reason")) for log in logs if log["log_level"] == "error"] == [
        ("admissions cannot be written to the ledger; the server tries again", "the disk is full")
    ]
