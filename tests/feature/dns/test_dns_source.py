"""Tests of the DNS source with a real DNS server."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.service import DnsName, Protocol, Service, ServiceKey, ServicePort
from meshwright.providers.contract import Counts
from meshwright.providers.dns.last_answers import SavedAnswers
from meshwright.providers.dns.nameserver import Nameserver
from meshwright.providers.dns.records import DnsAnswer, DnsFailure, Question, RecordType
from meshwright.providers.dns.resolver import Resolver
from meshwright.providers.dns.schedule import Pacing
from meshwright.providers.dns.source import DnsSource
from tests.feature.dns.dnsmasq import DEADLINE, Dnsmasq, needs_dnsmasq, running
from tests.meshes.sources import instead, slices
from tests.unit.providers.directory import running_source as watched

pytestmark = needs_dnsmasq
HOUR = timedelta(hours=1)
SOON = Pacing(timedelta(milliseconds=50), HOUR)
NEVER, AT_ONCE = HOUR, timedelta(0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Dnsmasq]:
    """A server with a TTL of 0, so that only the minimum interval paces the queries."""
    with running(tmp_path / "dnsmasq") as server:
        yield server


def _service(*names: DnsName, name: str = "db") -> Service:
    port = ServicePort(Port(80), Port(8080), Protocol.HTTP, "http")
    return Service(ServiceKey(Namespace("shop"), ServiceName(name)), (port,), dns_names=names)


class Watched(watched.WatchedSource[DnsSource]):
    """A running source and its objects."""

    def slices(self) -> dict[str, tuple[tuple[str, ...], tuple[int, ...]]]:
        """Return addresses and ports by slice."""
        endpoint_slices = slices(self.source.objects())
        return {
            endpoint_slice.name: (
                endpoint_slice.addresses,
                tuple(number for _, number in endpoint_slice.ports),
            )
            for endpoint_slice in endpoint_slices
        }

    async def until_addresses(self, *addresses: str) -> None:
        """Wait until all slices together have exactly these addresses."""
        await self.until(
            lambda: sorted(a for item, _ in self.slices().values() for a in item) == [*addresses]
        )


@contextlib.asynccontextmanager
async def _watching(
    server: Dnsmasq,
    *services: Service,
    hold: timedelta = NEVER,
    patience: float = 5.0,
    keep: Callable[[SavedAnswers], None] = lambda _: None,
) -> AsyncIterator[Watched]:
    resolver = Resolver((Nameserver.parse(server.nameserver),), patience)
    source = DnsSource(resolver, lambda: datetime.now(UTC), pacing=SOON, hold=hold, keep=keep)
    source.follow(instead(services))
    async with watched.running(Watched(source)) as result:
        yield result


def _found_at(server: Dnsmasq, ttl: float, *addresses: str) -> DnsAnswer:
    return DnsAnswer(ttl, tuple(map(IpAddress, addresses)), nameserver=server.nameserver)


async def _ask(server: Dnsmasq, name: str, record: RecordType) -> DnsAnswer | DnsFailure:
    return await Resolver((Nameserver.parse(server.nameserver),)).ask(Question(name, record))


async def test_resolver_parses_each_kind_of_answer(tmp_path: Path) -> None:
    """Addresses, an alias, SRV records and TTLs are read.

    A missing name or type is an empty answer, and a refusal is a failure.
    """
    server = Dnsmasq(tmp_path / "dnsmasq", ttl=7)
    server.records = (
        "--cname=alias.mesh.test,db.mesh.test",
        "--host-record=slow.mesh.test,10.0.0.9,60",
        "--srv-host=_db._tcp.mesh.test,DB.mesh.test,5432,10,5",
        "--srv-host=_gone._tcp.mesh.test",
    )
    server.zone(db=["10.0.0.2", "10.0.0.1", "fd00:0::1"])
    server.start()
    try:
        a, aaaa, srv = RecordType.A, RecordType.AAAA, RecordType.SRV
        found_here = functools.partial(_found_at, server)
        assert await _ask(server, "db.mesh.test", a) == found_here(7, "10.0.0.1", "10.0.0.2")
        assert await _ask(server, "db.mesh.test", aaaa) == found_here(7, "fd00::1")
        assert await _ask(server, "alias.mesh.test", a) == found_here(7, "10.0.0.1", "10.0.0.2")
        assert await _ask(server, "slow.mesh.test", a) == found_here(60, "10.0.0.9")
        (target,) = (await _ask(server, "_db._tcp.mesh.test", srv)).targets  # type: ignore[union-attr]  # Found
        assert (target.name, target.port, target.priority, target.weight) == ("db.mesh.test", 5432, 10, 5)
        for name, record in (("slow.mesh.test", aaaa), ("none.mesh.test", a), ("_gone._tcp.mesh.test", srv)):
            result = await _ask(server, name, record)
            assert isinstance(result, DnsAnswer)
            assert (result.addresses, result.targets) == ((), ())
        refused = f"127.0.0.1 port {server.port}: REFUSED"
        assert await _ask(server, "other.test", a) == DnsFailure(refused)
    finally:
        server.stop()


async def test_answer_too_large_for_udp_is_fetched_over_tcp(server: Dnsmasq) -> None:
    """200 addresses take 3 kB, but UDP without EDNS is limited to 512 bytes."""
    addresses = [f"10.1.0.{number}" for number in range(1, 201)]
    server.zone(big=addresses)
    async with _watching(server, _service(DnsName("big.mesh.test"))) as watched:
        await watched.until_addresses(*sorted(addresses))


async def test_unanswered_query_fails_at_its_time_limit(server: Dnsmasq) -> None:
    """Without a server the query fails after the configured 0.2 s."""
    server.stop()
    resolver = Resolver((Nameserver.parse(server.nameserver),), 0.2)
    assert await resolver.ask(Question("db.mesh.test", RecordType.A)) == DnsFailure("timed out after 0.2 s")


async def test_zone_changes_update_the_slices(server: Dnsmasq) -> None:
    """IPv4 and IPv6 addresses, ports of the service or of the name, and the set of services are followed."""
    server.zone(db=["10.0.0.1", "fd00::1"], other=["10.0.0.7"])
    first = _service(DnsName("db.mesh.test"), DnsName("other.mesh.test", Port(5)))
    async with _watching(server, first) as watched:
        await watched.until_addresses("10.0.0.1", "10.0.0.7", "fd00::1")
        both = ("10.0.0.1", "fd00::1")
        assert watched.slices() == {"db-dns": (both, (8080,)), "db-dns-5": (("10.0.0.7",), (5,))}
        server.zone(db=["10.0.0.2", "fd00::2"], other=["10.0.0.7"])
        await watched.until_addresses("10.0.0.2", "10.0.0.7", "fd00::2")
        second = _service(DnsName("other.mesh.test"), name="more")
        watched.source.follow(instead([second], [first]))
        await watched.until(lambda: watched.slices() == {"more-dns": (("10.0.0.7",), (8080,))})
        assert watched.source.counts() == Counts(good=1)
        watched.source.follow(instead([], [second]))
        await watched.until_addresses()
        assert watched.source.freshness().last_full_read is None


async def test_srv_records_are_resolved_to_addresses(server: Dnsmasq) -> None:
    """Changes of the target's addresses and of the SRV records are followed."""
    server.stop()
    server.records = ("--srv-host=_db._tcp.mesh.test,one.mesh.test,5432,0,0",)
    server.zone(one=["10.0.0.1"], two=["10.0.0.2"])
    server.start()
    async with _watching(server, _service(DnsName("_db._tcp.mesh.test", srv=True)), patience=0.5) as watched:
        await watched.until(lambda: watched.slices() == {"db-dns-5432": (("10.0.0.1",), (5432,))})
        server.zone(one=["10.0.0.3"], two=["10.0.0.2"])
        await watched.until_addresses("10.0.0.3")
        server.stop()
        server.records = ("--srv-host=_db._tcp.mesh.test,two.mesh.test,5433,0,0",)
        server.start()
        await watched.until(lambda: watched.slices() == {"db-dns-5433": (("10.0.0.2",), (5433,))})


async def test_name_is_not_queried_again_before_its_ttl_expires(server: Dnsmasq) -> None:
    """A name with a TTL of an hour is queried once, while another name is queried at least five times."""
    server.stop()
    server.records = ("--host-record=slow.mesh.test,10.0.0.9,3600",)
    server.zone(fast=["10.0.0.1"])
    server.start()
    names = DnsName("slow.mesh.test"), DnsName("fast.mesh.test")
    async with _watching(server, _service(*names)) as watched, asyncio.timeout(DEADLINE):
        await watched.until_addresses("10.0.0.1", "10.0.0.9")
        while server.asked("A] fast.mesh.test") < 5:
            await asyncio.sleep(0.01)
    assert server.asked("A] slow.mesh.test") == 1


async def test_unreachable_dns_server_keeps_the_last_addresses(server: Dnsmasq) -> None:
    """The last answer stays in force with its age and a problem that names it.

    A new answer clears the problem.
    """
    server.zone(db=["10.0.0.1", "fd00::1"])
    async with _watching(server, _service(DnsName("db.mesh.test")), hold=AT_ONCE, patience=0.1) as watched:
        await watched.until_addresses("10.0.0.1", "fd00::1")
        source = watched.source
        server.stop()
        both = "2 of 2 DNS queries were not answered"
        await watched.until(lambda: source.freshness().error == both and len(source.problems()) == 1)
        fresh = source.freshness()
        assert watched.slices() == {"db-dns": (("10.0.0.1", "fd00::1"), (8080,))}
        assert fresh.last_full_read is not None
        assert fresh.error_since is not None
        assert fresh.last_full_read <= fresh.error_since
        assert source.counts() == Counts(stale=1)
        (problem,) = source.problems()
        reasons = ", ".join(f"db.mesh.test {record}: timed out after 0.1 s" for record in ("A", "AAAA"))
        of = f"{fresh.last_full_read:%Y-%m-%dT%H:%M:%SZ}"
        stays = f"the addresses of the last good answer ({of}) stay in force"
        assert problem.expected == f"the name cannot be resolved; {stays} ({reasons})"
        server.zone(db=["10.0.0.2", "fd00::1"])
        server.start()
        await watched.until_addresses("10.0.0.2", "fd00::1")
        await watched.until(lambda: source.problems() == ())
        assert source.freshness().error == ""
        assert source.counts() == Counts(good=1)


async def test_answers_are_saved_after_a_change_and_at_the_end(server: Dnsmasq) -> None:
    """Unchanged answers are not saved again until the end, which saves their newer dates."""
    server.zone(db=["10.0.0.1"])
    kept: list[SavedAnswers] = []
    question = Question("db.mesh.test", RecordType.A)
    async with (
        _watching(server, _service(DnsName("db.mesh.test")), keep=kept.append) as watched,
        asyncio.timeout(DEADLINE),
    ):
        await watched.until_addresses("10.0.0.1")
        while not kept:
            await asyncio.sleep(0.01)
        asked = server.asked("A] db.mesh.test")
        while server.asked("A] db.mesh.test") < asked + 3:
            await asyncio.sleep(0.01)
        (first,) = kept
    (_, last) = kept
    assert [
        found_slice.value
        for guarded_value in first.in_force.values()
        for found_slice in guarded_value.in_force
    ] == slices(watched.source.objects())
    before, after = first.states[question].answered, last.states[question].answered
    assert before is not None
    assert after is not None
    assert before < after


async def test_missing_name_is_held_and_reported_until_it_returns(server: Dnsmasq) -> None:
    """The addresses stay in force. The test below shows the case without a hold."""
    server.zone(db=["10.0.0.1"])
    async with _watching(server, _service(DnsName("db.mesh.test")), hold=NEVER) as watched:
        await watched.until_addresses("10.0.0.1")
        server.zone(other=["10.0.0.9"])
        await watched.until(lambda: [problem.code for problem in watched.source.problems()] == ["MW1110"])
        assert watched.source.freshness().held == ("shop/db",)
        assert watched.slices() == {"db-dns": (("10.0.0.1",), (8080,))}
        server.zone(db=["10.0.0.1"])
        await watched.until(lambda: watched.source.problems() == ())
        assert watched.source.freshness().held == ()


@pytest.mark.parametrize("hold", [AT_ONCE, timedelta(milliseconds=100)])
async def test_name_that_stays_missing_loses_its_addresses(server: Dnsmasq, hold: timedelta) -> None:
    """Without a hold the addresses go at once, otherwise after the configured time."""
    server.zone(db=["10.0.0.1"])
    async with _watching(server, _service(DnsName("db.mesh.test")), hold=hold) as watched:
        await watched.until_addresses("10.0.0.1")
        server.zone()
        await watched.until_addresses()
        assert watched.source.problems() == ()


async def test_first_answers_are_awaited_up_to_a_time_limit(server: Dnsmasq) -> None:
    """The wait includes the addresses of SRV targets. Without a DNS server the wait ends with no objects."""
    server.stop()
    server.records = ("--srv-host=_db._tcp.mesh.test,one.mesh.test,5432,0,0",)
    server.zone(one=["10.0.0.1"])
    server.start()
    resolver = Resolver((Nameserver.parse(server.nameserver),))
    source = DnsSource(resolver, lambda: datetime.now(UTC), pacing=SOON, patience=timedelta(seconds=DEADLINE))
    await source.first()
    assert len(source.objects()) == 0
    service, other = _service(DnsName("_db._tcp.mesh.test", srv=True)), _service(DnsName("other.mesh.test"))
    source.follow(instead([service]))
    await source.first()
    (sliced,) = source.objects().values()
    assert [endpoint_slice.addresses for endpoint_slice in slices(source.objects())] == [("10.0.0.1",)]
    where = f"_db._tcp.mesh.test at 127.0.0.1:{server.port}"
    assert where in str(sliced.origin)
    server.stop()
    hasty = DnsSource(resolver, lambda: datetime.now(UTC), patience=timedelta(seconds=0.05))
    hasty.follow(instead([other]))
    await hasty.first()
    assert len(hasty.objects()) == 0
