"""Tests of the acknowledgement of a new issuer's roots by sidecars."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pytest
import structlog

from certs.errors import StateError
from certs.keys.bundle import TrustBundle
from meshwright.controller.issuing.roots_taken import hearing, without
from meshwright.sidecars.contract.contexts import AcknowledgedSecrets
from tests.unit.certs.issuers.example_cas import ca
from xds.cache import NodeKey

NOW = datetime(2026, 11, 22, tzinfo=UTC)
OLD, NEW = (TrustBundle.from_pems([ca(name, NOW).pem]) for name in ("old", "new"))
BOTH = OLD.union(NEW)


def _taken(name: str, bundle: TrustBundle) -> AcknowledgedSecrets:
    return AcknowledgedSecrets(NodeKey(name), bundle.pem, b"")


def test_sidecars_without_the_new_roots_are_listed() -> None:
    """Sidecars that acknowledged other roots or none are listed by name.

    Without sidecars the list is empty.
    """
    none = TrustBundle.from_pems([])
    result = [_taken("b", none), _taken("a", OLD), _taken("c", BOTH), _taken("d", NEW)]
    assert without(NEW, result) == ["a", "b"]
    assert without(NEW, []) == []


class Issuer:
    """Fake issuer that waits for `NEW`, and whose first two writes fail."""

    def __init__(self) -> None:
        self.failures = 2
        self.noted: list[TrustBundle] = []

    def awaited(self, now: datetime) -> TrustBundle | None:
        """Return the roots to be acknowledged, or None after the write."""
        assert now == NOW
        return None if self.noted else NEW

    def have_taken(self, roots: TrustBundle) -> None:
        """Record the acknowledged roots; raise StateError for the first two calls."""
        assert roots is NEW
        if self.failures:
            self.failures -= 1
            raise StateError("No space left on device")
        self.noted.append(roots)


async def test_acknowledged_roots_are_saved_once_all_sidecars_have_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The roots are saved after the last acknowledgement.

    Missing sidecars and a full disk are each logged once.
    """
    monkeypatch.setattr("meshwright.controller.issuing.roots_taken.LOOK_SECONDS", 0)
    issuer, looks, there = Issuer(), 0, [_taken("a", BOTH), _taken("b", OLD)]

    def taken() -> Iterator[AcknowledgedSecrets]:
        nonlocal looks
        looks += 1
        return iter(there)

    with structlog.testing.capture_logs() as logs:
        running = asyncio.create_task(hearing(issuer, taken, lambda: NOW))
        try:
            async with asyncio.timeout(60):
                while looks < 5:
                    await asyncio.sleep(0)
                assert not issuer.noted
                there[1] = _taken("b", BOTH)
                while not issuer.noted:
                    await asyncio.sleep(0)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert [(log["event"], log.get("first")) for log in logs] == [
        ("sidecars have not acknowledged the issuer's roots", ["b"]),
        ("acknowledgement of the issuer's roots cannot be saved", None),
    ]


class Others:
    """Fake of the other servers: what was told to them, and who of theirs lacks the roots."""

    def __init__(self, *lacking: tuple[str, ...] | None) -> None:
        self.answers = list(lacking)
        self.told: list[tuple[str, tuple[str, ...]] | None] = []

    async def lacking(self, roots: str, ours: Sequence[str]) -> tuple[str, ...] | None:
        """Return the next answer."""
        self.told.append((roots, tuple(ours)))
        answer = self.answers.pop(0) if self.answers else ()
        return None if answer is None else (*ours, *answer)

    async def done(self) -> None:
        """Note the end."""
        self.told.append(None)


async def test_server_without_sidecars_does_not_speak_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The roots count as acknowledged once no server has, or may have, a sidecar without them."""
    monkeypatch.setattr("meshwright.controller.issuing.roots_taken.LOOK_SECONDS", 0)
    issuer = Issuer()
    others = Others(None, ("2 sidecars of server b",), ("server c, which has not reported",))
    with structlog.testing.capture_logs() as logs:
        running = asyncio.create_task(hearing(issuer, lambda: iter(()), lambda: NOW, others))
        try:
            async with asyncio.timeout(60):
                while None not in others.told:
                    assert not issuer.noted or len(others.told) > 3
                    await asyncio.sleep(0)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert others.told[:4] == [(NEW.digest, ())] * 4
    assert (issuer.noted, logs[0]["first"]) == ([NEW], ("2 sidecars of server b",))
