"""Tests of sources under a system date that is set back again and again: they use a monotonic clock."""

import asyncio
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.service import DnsName, Protocol, Service, ServiceKey, ServicePort
from meshwright.providers.directory.source import DirectorySource
from meshwright.providers.dns.records import DnsAnswer, Question
from meshwright.providers.dns.resolver import Resolver
from meshwright.providers.dns.schedule import Pacing
from meshwright.providers.dns.source import DnsSource
from meshwright.providers.moments import Moment, monotonic
from tests.meshes import values as a
from tests.meshes.texts import account
from tests.unit.providers.directory.running_source import WatchedSource, running

START = datetime(2026, 1, 2, tzinfo=UTC)
SERVICE = Service(
    ServiceKey(Namespace("shop"), ServiceName("db")),
    (ServicePort(Port(80), Port(8080), Protocol.HTTP, "http"),),
    dns_names=(DnsName("db.test"),),
)


def set_back() -> Callable[[], datetime]:
    """Return a clock that is a day earlier at each call."""
    days = itertools.count()
    return lambda: START - timedelta(days=next(days))


def as_moments(clock: Callable[[], datetime]) -> Callable[[], Moment]:
    """Return a date as if it were a monotonic clock."""
    return lambda: clock() - START


class CountingResolver(Resolver):
    """A resolver without answers that counts questions; `often` is set after the third one."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.often = asyncio.Event()

    async def ask(self, question: Question) -> DnsAnswer:
        """Return an empty answer."""
        self.count += question.record == "A"
        if self.count == 3:
            self.often.set()
        return DnsAnswer(0)


async def _asked_often(monotonic: Callable[[], Moment], seconds: float) -> None:
    resolver = CountingResolver()
    pacing = Pacing(timedelta(milliseconds=1), timedelta(milliseconds=1))
    source = DnsSource(resolver, set_back(), pacing=pacing, monotonic=monotonic)
    source.follow(a.objects(SERVICE))
    async with running(WatchedSource(source)), asyncio.timeout(seconds):
        await resolver.often.wait()


async def test_dns_names_are_asked_for_on_time_although_the_date_is_set_back() -> None:
    """Negative control: with the date as its clock, the source stops asking."""
    await _asked_often(monotonic, 60)
    with pytest.raises(TimeoutError):
        await _asked_often(as_moments(set_back()), 0.2)


async def _believed(path: Path, monotonic: Callable[[], Moment], seconds: float) -> None:
    for name in ("a", "b"):
        (path / f"{name}.yaml").write_text(account(name))
    source = DirectorySource(path, set_back(), settle=timedelta(milliseconds=1), monotonic=monotonic)
    source.load()
    async with running(WatchedSource(source)) as watched, asyncio.timeout(seconds):
        (path / "a.yaml").unlink()
        await watched.until(lambda: len(source.objects()) == 1)


async def test_removed_file_takes_effect_on_time_although_the_date_is_set_back(tmp_path: Path) -> None:
    """Negative control: with the date as its clock, the settle time never ends."""
    await _believed(tmp_path, monotonic, 60)
    with pytest.raises(TimeoutError):
        await _believed(tmp_path, as_moments(set_back()), 0.3)
