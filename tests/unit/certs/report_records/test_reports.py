"""Tests of the reports of servers in a root rotation: their form in records, and what several ones say."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certs.errors import StateError
from certs.report_records import fields
from certs.report_records.fields import parts_of, report_in
from certs.report_records.store import RecordedReports
from certs.roots.proxy_facts import NO_FACTS, ProxyFacts, ProxyKey, key_of_name, united
from certs.roots.rotation import Fingerprint, begun
from certs.roots.server_report import ServerReport, step_of
from meshwright.mesh.identity import ProxyName
from meshwright.records.content import Content, UnreadableContentError
from meshwright.records.contract import LARGEST_CONTENT, ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.shared_records import FaultyRecords, LoopThread, away

NOW: Final = datetime(2026, 11, 22, 12, tzinfo=UTC)
OLD, NEW = Fingerprint("5f2c" * 16), Fingerprint("77ab" * 16)
ROTATION: Final = begun(OLD, NEW, NOW)
BOTH, OLD_ONLY = frozenset({OLD, NEW}), frozenset({OLD})
CART: Final = ProxyName.parse("cart.shop.prod")

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
            name: RecordedReports(client, ReplicaId(name), thread.loop) for name, client in clients.items()
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


def test_records_of_a_report_that_became_shorter_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise facts about proxies that have moved would stay."""
    monkeypatch.setattr(fields, "PROXIES_IN_A_RECORD", 2)
    memory = Memory()
    proxies = {ProxyKey(bytes([number]) * 8): ProxyFacts(BOTH, OLD) for number in range(5)}
    with LoopThread() as thread:
        one, two = (
            RecordedReports(MemoryRecords(memory, ReplicaId(name)), ReplicaId(name), thread.loop)
            for name in ("a", "b")
        )
        thread.start(one.follow(), two.follow())
        for count, records in ((5, 3), (1, 1), (4, 2), (0, 1)):
            given_report = report(dict([*proxies.items()][:count]))
            one.write(given_report, ROTATION)
            assert two.others([ReplicaId("a")], ROTATION) == {"a": given_report}
            assert len(memory.records) == records
