"""Tests of the reports of servers in a root rotation: their form in records, and what several ones say."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from certs.errors import StateError
from certs.report_records import fields
from certs.report_records.fields import key_of_report, parts_of, report_in
from certs.report_records.store import RecordedReports
from certs.roots.proxy_facts import NO_FACTS, ProxyFacts, ProxyKey, key_of_name, united
from certs.roots.rotation import Fingerprint, begun
from certs.roots.server_report import ServerReport, step_of
from certs.state.record_proofs import with_proof, without_proof
from certs.state.sealing import RecordSeal
from meshwright.mesh.identity import ProxyName
from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import LARGEST_CONTENT, ReplicaId
from meshwright.records.key import Key
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.shared_records import FaultyRecords, LoopThread, away

NOW: Final = datetime(2026, 11, 22, 12, tzinfo=UTC)
OLD, NEW = Fingerprint("5f2c" * 16), Fingerprint("77ab" * 16)
ROTATION: Final = begun(OLD, NEW, NOW)
BOTH, OLD_ONLY = frozenset({OLD, NEW}), frozenset({OLD})
SEAL: Final = RecordSeal(bytes(32))
CART: Final = ProxyName.parse("cart.shop.prod")

CHANGED: Final = "no server of this mesh has written it, or it was changed"
EARLIER: Final = "it is an earlier report, which somebody has written again"
READY: Final = parts_of(
    ServerReport(step_of(ROTATION), False, (), {key_of_name(CART): ProxyFacts(BOTH, OLD)}), ROTATION
)[0]["proxies"]
Forge = Callable[[Fields, Fields, Fields], Fields]
"""Return the fields to put in place of a report, from this one, an earlier one, and one of another server."""

roots = st.frozensets(st.sampled_from((OLD, NEW)))
streams = st.tuples(roots, st.sampled_from((OLD, NEW))) | st.just((None, None))
confirmations = st.tuples(
    roots, st.integers(1, 2**32 - 1).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
) | st.just((None, None))


@st.composite
def facts(draw: st.DrawFn) -> ProxyFacts:
    """Draw the facts of one server about a proxy."""
    (mesh, service), (channel, at) = draw(streams), draw(confirmations)
    return ProxyFacts(mesh, service, channel, at, draw(st.booleans()))


def report(proxies: Mapping[ProxyKey, ProxyFacts]) -> ServerReport:
    """Return a report about these proxies."""
    return ServerReport(step_of(ROTATION), False, ("3f9a02",), proxies)


@given(st.dictionaries(st.binary(min_size=8, max_size=8).map(ProxyKey), facts(), max_size=5))
def test_report_is_read_as_it_was_written(proxies: dict[ProxyKey, ProxyFacts]) -> None:
    """Times have whole seconds."""
    assert report_in(parts_of(report(proxies), ROTATION), ROTATION) == report(proxies)


def test_report_about_thousands_of_proxies_is_in_several_records() -> None:
    """Each content stays below the limit of a record."""
    proxies = {key_of_name(ProxyName.parse(f"p{number}.shop.prod")): NO_FACTS for number in range(16_500)}
    parts = parts_of(report(proxies), ROTATION)
    sizes = [len(Content(part, ReplicaId("a" * 60)).encode()) for part in parts]
    assert (len(parts), max(sizes) < LARGEST_CONTENT) == (3, True)
    assert report_in(parts, ROTATION) == report(proxies)


def test_report_about_another_step_has_no_proxies() -> None:
    """Its facts are about other roots, so only the step counts."""
    later = begun(OLD, Fingerprint("90cd" * 16), NOW)
    written = parts_of(report({key_of_name(CART): ProxyFacts(BOTH, OLD)}), ROTATION)
    assert report_in(written, later) == ServerReport(step_of(ROTATION), False, ("3f9a02",))


@pytest.mark.parametrize(
    "damage", [{"proxies": "AA=="}, {"proxies": None}, {"step": 1}, {"issued": "3f"}, {"is_behind": None}]
)
def test_damaged_report_counts_as_none(damage: dict[str, object]) -> None:
    """The server has then not reported, so the rotation waits."""
    (written,) = parts_of(report({}), ROTATION)
    with pytest.raises(UnreadableContentError):
        report_in(({**written, **damage},), ROTATION)


def known(mesh: frozenset[Fingerprint] | None = None, *, at: int = 0, **more: object) -> ProxyFacts:
    """Return facts with a confirmation of these roots at a second, 0 for none."""
    channel = more.pop("channel", None)
    return ProxyFacts(mesh, channel=channel, confirmed_at=NOW + timedelta(seconds=at) if at else None, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "two", "both"),
    [
        (known(BOTH, service=NEW), NO_FACTS, known(BOTH, service=NEW)),
        # While it moves it has two streams, and each shows what it has.
        (known(BOTH, service=NEW), known(OLD_ONLY, service=OLD), known(OLD_ONLY, service=OLD)),
        (known(BOTH, service=NEW), known(BOTH, service=NEW), known(BOTH, service=NEW)),
        (known(connected=True), known(BOTH), known(BOTH, connected=True)),
        # Its agent asks one server after the other.
        (known(channel=BOTH, at=5), known(channel=OLD_ONLY, at=4), known(channel=BOTH, at=5)),
        (known(channel=BOTH, at=5), known(channel=OLD_ONLY, at=5), known(channel=OLD_ONLY, at=5)),
        (known(channel=OLD_ONLY, at=9), known(BOTH), known(BOTH, channel=OLD_ONLY, at=9)),
    ],
)  # fmt: skip
def test_facts_of_two_servers_are_united(one: ProxyFacts, two: ProxyFacts, both: ProxyFacts) -> None:
    """All streams count, and of the confirmations the newest one. The order is of no influence."""
    assert united((one, two), NEW) == united((two, one), NEW) == both


def test_servers_exchange_reports() -> None:
    """A report is written once, is another one after a change, and disappears after the rotation."""
    memory = Memory()
    with LoopThread() as thread:
        clients = {name: FaultyRecords(MemoryRecords(memory, ReplicaId(name))) for name in ("a", "b", "c")}
        stores = {
            name: RecordedReports(client, ReplicaId(name), thread.loop, SEAL)
            for name, client in clients.items()
        }
        thread.start(*(store.follow() for store in stores.values()))
        here = [ReplicaId(name) for name in stores]
        first = report({key_of_name(CART): ProxyFacts(BOTH, OLD)})
        for _ in range(2):
            stores["a"].write(first, ROTATION)
        assert memory.writes == 1
        assert stores["b"].others(here, ROTATION) == {"a": first, "c": None}
        stores["a"].write(report({}), ROTATION)
        assert stores["b"].others(here, ROTATION) == {"a": report({}), "c": None}
        assert stores["b"].others([ReplicaId("b")], ROTATION) == {}
        with (
            away(clients["a"]),
            pytest.raises(StateError, match="report to the other servers cannot be written"),
        ):
            stores["a"].write(first, ROTATION)
        # Whoever removes the report of a server that is here after all, gets it again.
        stores["b"].remove([ReplicaId("a")])
        assert memory.records == {}
        stores["a"].write(report({}), ROTATION)
        assert stores["b"].others(here, ROTATION) == {"a": report({}), "c": None}
        stores["a"].remove([ReplicaId("a")])
        assert (memory.records, stores["b"].servers()) == ({}, frozenset())


@pytest.mark.parametrize(
    ("forge", "reason"),
    [
        (lambda own, earlier, other: {**own, "proxies": READY}, CHANGED),
        (lambda own, earlier, other: {**own, "proof": None}, CHANGED),
        (lambda own, earlier, other: without_proof(own), CHANGED),
        (lambda own, earlier, other: with_proof(own, "reports/a/0", RecordSeal(b"x" * 32)), CHANGED),
        (lambda own, earlier, other: other, CHANGED),
        (lambda own, earlier, other: earlier, EARLIER),
    ],
)
def test_report_that_the_server_has_not_written_is_refused(forge: Forge, reason: str) -> None:
    """Otherwise a program that may write records could claim that proxies have taken new roots.

    A changed report is refused, a report of another server or with another data key, and an earlier one. The
    log says so once, and the server itself writes its report again.
    """
    memory = Memory()
    ready = report({key_of_name(CART): ProxyFacts(BOTH, OLD)})
    with LoopThread() as thread, capture_logs() as logs:
        reports = {
            name: RecordedReports(MemoryRecords(memory, ReplicaId(name)), ReplicaId(name), thread.loop, SEAL)
            for name in ("a", "b", "c")
        }
        thread.start(*(one.follow() for one in reports.values()))
        key, own = key_of_report(ReplicaId("a"), 0), report({})
        reports["a"].write(ready, ROTATION)
        earlier = fields_in(memory, key)
        reports["a"].write(own, ROTATION)
        reports["b"].write(ready, ROTATION)
        others = [ReplicaId("a")]
        assert reports["c"].others(others, ROTATION) == {"a": own}
        forged = forge(fields_in(memory, key), earlier, fields_in(memory, key_of_report(ReplicaId("b"), 0)))
        thread.run(_put(memory, key, Content(forged, ReplicaId("a"), count=9)))
        for _ in range(2):
            assert reports["c"].others(others, ROTATION) == {"a": None}
        reports["a"].write(own, ROTATION)
        assert reports["c"].others(others, ROTATION) == {"a": own}
    (line,) = logs
    assert line == {
        "event": "report of a server is ignored",
        "log_level": "error",
        "replica": "a",
        "key": "reports/a/0",
        "reason": f"{reason}: find out who may write records",
    }


def test_report_of_an_earlier_rotation_is_none_of_this_one() -> None:
    """A report that was true of other roots has a proof, and still says nothing about these."""
    memory, later = Memory(), begun(OLD, NEW, NOW + timedelta(days=90))
    with LoopThread() as thread:
        one, two = (
            RecordedReports(MemoryRecords(memory, ReplicaId(name)), ReplicaId(name), thread.loop, SEAL)
            for name in ("a", "b")
        )
        thread.start(one.follow(), two.follow())
        one.write(report({key_of_name(CART): ProxyFacts(BOTH, OLD)}), ROTATION)
        former = two.others([ReplicaId("a")], later)["a"]
        assert former is not None
        assert (former.step != step_of(later), dict(former.proxies)) == (True, {})


def fields_in(memory: Memory, key: Key) -> Fields:
    """Return the fields of a record in the store."""
    return Content.decode(memory.records[key].content).fields


async def _put(memory: Memory, key: Key, content: Content) -> None:
    memory.put(key, content.encode())


def test_records_of_a_report_that_became_shorter_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise facts about proxies that have moved would stay."""
    monkeypatch.setattr(fields, "PROXIES_IN_A_RECORD", 2)
    memory = Memory()
    proxies = {ProxyKey(bytes([number]) * 8): ProxyFacts(BOTH, OLD) for number in range(5)}
    with LoopThread() as thread:
        one, two = (
            RecordedReports(MemoryRecords(memory, ReplicaId(name)), ReplicaId(name), thread.loop, SEAL)
            for name in ("a", "b")
        )
        thread.start(one.follow(), two.follow())
        for count, records in ((5, 3), (1, 1), (4, 2), (0, 1)):
            given_report = report(dict([*proxies.items()][:count]))
            one.write(given_report, ROTATION)
            assert two.others([ReplicaId("a")], ROTATION) == {"a": given_report}
            assert len(memory.records) == records
