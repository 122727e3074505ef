"""Tests of excluded units: a proxy gets the rest of its policy, and admits no further caller."""

import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.policy.units import Unit, unit_id, units
from catalog.policy.values.inbound import AccessRule, EveryoneInTheMesh, OnlyRules
from catalog.policy.values.proxy import ProxyPolicy
from catalog.policy.values.route_table import AppliedSplit
from meshwright.mesh.policies.retries import Retries, RetryCondition
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.mesh.service import Protocol
from tests.tools.hypothesis_profiles import examples
from tests.unit.delivery.quarantine.refusing_proxy import (
    NODE,
    RefusingProxyPlane,
    admitted,
    covers,
    match,
    policy,
    port,
    rule,
    snapshot,
    split,
)

SOURCES = ("a", "b", "c", "d")
MATCHES = tuple(f"m{number}" for number in range(12))

_http_rules = st.lists(
    st.builds(rule, st.sampled_from(SOURCES), *[st.sampled_from(MATCHES)] * 2),
    max_size=6,
    unique_by=lambda access_rule: access_rule.by,
)
_tcp_rules = st.lists(
    st.sampled_from(SOURCES).map(rule), max_size=4, unique_by=lambda access_rule: access_rule.by
)
_splits = st.lists(
    st.builds(split, st.sampled_from(("s", "t")), st.sampled_from(MATCHES)),
    max_size=2,
    unique_by=lambda route_entry: route_entry.chosen_by,
)

_retries = st.none() | st.sampled_from(
    [Retries((RetryCondition.RESET,)), Retries((RetryCondition.SERVER_ERROR,), 5)]
)


def _access(rules: list[AccessRule]) -> OnlyRules:
    return OnlyRules(tuple(sorted(rules, key=lambda access_rule: access_rule.by)))


@st.composite
def policies(draw: st.DrawFn) -> ProxyPolicy:
    """Return a random policy with HTTP and TCP ports, some of them open to all callers."""
    everyone = draw(st.integers(0, 9)) == 0
    http = EveryoneInTheMesh() if everyone else _access(draw(_http_rules))
    ports = (
        port(80, Protocol.HTTP, http),
        port(81, Protocol.HTTP, _access(draw(_http_rules))),
        port(90, Protocol.TCP, _access(draw(_tcp_rules))),
    )
    return policy(*ports, splits=draw(_splits), retries=draw(_retries))


def _guilty(draw: st.DataObject, *of: ProxyPolicy) -> frozenset[Unit]:
    every = sorted({unit for proxy_policy in of for unit in units(proxy_policy)}, key=repr)
    return frozenset(draw.draw(st.sets(st.sampled_from(every), max_size=4))) if every else frozenset()


def _settled(proxy: RefusingProxyPlane, now: ProxyPolicy) -> int:
    """Settle, and check that the served and held resources admit only callers of the policy.

    Return the number of rejections.
    """
    allowed, before = admitted(snapshot(now)), proxy.nacks
    for step, _ in enumerate(_watched(proxy)):
        assert covers(allowed, admitted(proxy.served))
        assert step < 400, "it ends"
    assert covers(allowed, admitted(proxy.held))
    return proxy.nacks - before


def _watched(proxy: RefusingProxyPlane) -> Iterator[None]:
    yield
    for _ in proxy.settle():
        yield


@settings(max_examples=examples(4, fresh=160))
@given(st.data())
def test_exactly_the_guilty_units_are_excluded(data: st.DataObject) -> None:
    """This holds for a first or another policy, after a new stream and after a restart.

    A restarted server offers no unit that the proxy refused before.
    """
    earlier, now = data.draw(policies()), data.draw(policies())
    guilty = _guilty(data, earlier, now)
    proxy = RefusingProxyPlane(guilty)
    if data.draw(st.booleans()):
        proxy.publish(earlier)
        _settled(proxy, earlier)
    proxy.publish(now)
    nacks = _settled(proxy, now)
    present = {*units(now)}
    bad = {unit_id(item) for item in guilty & present}
    assert proxy.out() == bad
    assert covers(admitted(proxy.held), admitted(snapshot(now)) - _of(guilty, now))
    assert nacks <= 2 + 2 * len(bad) * (1 + math.ceil(math.log2(len(present) + 1)))
    proxy.reconnect()
    _settled(proxy, now)
    assert proxy.out() == bad
    again = RefusingProxyPlane(guilty, verdicts=proxy.quarantine.findings.verdicts())
    again.publish(now)
    assert _settled(again, now) == 0, "a restart asks nothing of the proxy that it has refused"
    assert again.out() == bad
    assert {*again.held} == {*proxy.held}


@settings(max_examples=examples(4, fresh=160))
@given(st.data())
def test_returning_proxy_is_not_offered_refused_units_again(data: st.DataObject) -> None:
    """Verdicts on a disconnected proxy are kept, as over a restart, and dropped with its workload."""
    now = data.draw(policies())
    guilty = _guilty(data, now)
    proxy = RefusingProxyPlane(guilty)
    proxy.publish(now)
    _settled(proxy, now)
    bad, verdicts, held = proxy.out(), proxy.quarantine.findings.verdicts(), {*proxy.held}
    proxy.leave()
    assert (proxy.out(), proxy.quarantine.findings.verdicts()) == (frozenset(), verdicts)
    assert (proxy.quarantine.due(), proxy.quarantine.findings.rejected()) == (None, ())
    proxy.publish(now)
    assert _settled(proxy, now) == 0
    assert (proxy.out(), {*proxy.held}) == (bad, held)
    proxy.leave()
    proxy.now += 100_000.0  # a long-running server: the next offer is one pause from now
    proxy.publish(now)
    assert (proxy.quarantine.due() is None) is not bool(bad)
    assert all(number > proxy.now for number in (proxy.quarantine.due(),) if number is not None)
    proxy.leave()
    proxy.quarantine.forget([NODE])
    assert proxy.quarantine.findings.verdicts() == ()
    proxy.publish(now)
    _settled(proxy, now)
    proxy.leave(known=False)
    assert proxy.quarantine.findings.verdicts() == ()


def _of(guilty: frozenset[Unit], now: ProxyPolicy) -> frozenset[tuple[int, str, str]]:
    """Return the admissions of a policy's guilty units, which must not be effective."""
    result = set()
    for inbound in now.inbound:
        if isinstance(inbound.access, EveryoneInTheMesh):
            if inbound.access in guilty:
                result.add((int(inbound.port), "*", "*"))
            continue
        for access_rule in inbound.access.rules:
            for who in map(str, access_rule.callers):
                if access_rule in guilty:
                    result.add((int(inbound.port), who, "*"))
                result |= {
                    (int(inbound.port), who, one.name) for one in access_rule.matches or () if one in guilty
                }
    return frozenset(result)


@settings(max_examples=examples(4, fresh=160))
@given(st.data())
def test_accepted_unit_is_no_longer_excluded(data: st.DataObject) -> None:
    """A unit that the proxy accepts after a retry or a pause is innocent, and the policy is served whole."""
    now = data.draw(policies())
    proxy = RefusingProxyPlane(_guilty(data, now))
    proxy.publish(now)
    _settled(proxy, now)
    proxy.guilty = frozenset()
    if data.draw(st.booleans()):
        proxy.retry()
        _settled(proxy, now)
    for _ in range(8):  # one by one, when they are due
        proxy.later(1000.0)
        _settled(proxy, now)
    assert proxy.quarantine.findings.units_out() == ()
    assert proxy.served is proxy.published.snapshot(next(iter(proxy.published.members)))


def test_caller_is_restricted_although_another_unit_of_the_change_is_refused() -> None:
    """An earlier bug enforced no policy after a refused unit. Two rejections find that unit."""
    before = policy(port(80, Protocol.HTTP, OnlyRules((rule("a", "all"),))))
    after = policy(port(80, Protocol.HTTP, OnlyRules((rule("a", "only"), rule("b", "bad")))))
    proxy = RefusingProxyPlane(frozenset({match("bad")}))
    proxy.publish(before)
    _settled(proxy, before)
    proxy.publish(after)
    _settled(proxy, after)
    assert admitted(proxy.held) == {(80, "default/a", "only")}
    assert proxy.nacks == 2, "both new ones at once, and one of them again"


@pytest.mark.parametrize("guilty_in", ["tls", "nothing"])
def test_listener_of_an_older_version_admits_only_callers_of_the_current_policy(guilty_in: str) -> None:
    """Ciphers that Envoy does not know make it refuse every listener.

    A client that the policy withdraws meanwhile must not be admitted by the last good version.
    """
    both = OnlyRules((rule("a"), rule("b")))
    before = policy(port(90, Protocol.TCP, both))
    proxy = RefusingProxyPlane(guilty_frames=frozenset({"bad"} if guilty_in == "tls" else ()))
    proxy.publish(before)
    _settled(proxy, before)
    assert {who for _, who, _ in admitted(proxy.held)} == {"default/a", "default/b"}
    bad = policy(port(90, Protocol.TCP, both), ciphers="bad")
    proxy.publish(bad)
    _settled(proxy, bad)
    assert {who for _, who, _ in admitted(proxy.held)} == {"default/a", "default/b"}, "as good as before"
    narrowed = policy(port(90, Protocol.TCP, OnlyRules((rule("b"), rule("c")))), ciphers="bad")
    proxy.publish(narrowed)
    _settled(proxy, narrowed)
    expected = {"default/b"} if guilty_in == "tls" else {"default/b", "default/c"}
    assert {who for _, who, _ in admitted(proxy.held)} == expected
    assert proxy.out() == frozenset(), "no client is at fault"
    closed = policy(ciphers="bad")
    proxy.publish(closed)
    _settled(proxy, closed)
    assert admitted(proxy.held) == frozenset()


def test_refused_split_falls_back_to_its_good_version_until_another_change() -> None:
    """Splits admit no caller, so the good version is better than none unless a new split waits."""
    web = port(80, Protocol.HTTP, OnlyRules((rule("a", "all"),)))
    before, after = (policy(web, splits=[split("s", name)]) for name in ("good", "bad"))
    proxy = RefusingProxyPlane(frozenset({match("bad")}))
    proxy.publish(before)
    _settled(proxy, before)
    proxy.publish(after)
    _settled(proxy, after)
    assert _splits_of(proxy) == {"good"}
    beside = policy(web, splits=[split("s", "bad"), split("t", "new")])
    proxy.publish(beside)
    _settled(proxy, beside)
    assert _splits_of(proxy) == {"new"}


def _splits_of(proxy: RefusingProxyPlane) -> set[str]:
    routes = (item for key, item in proxy.held.items() if key[1].startswith("rds-outbound"))
    result: set[str] = set()
    for resource in routes:
        for unit in resource.recipe.units:  # type: ignore[attr-defined]
            assert not isinstance(unit, AppliedSplit)
            result |= {unit.name} if isinstance(unit, HTTPMatch) else set()
    return result


def test_refused_unit_is_offered_again_after_growing_pauses() -> None:
    """The pauses are 10, 20, 40 seconds and so on, and it is not offered in between."""
    now = policy(port(80, Protocol.HTTP, OnlyRules((rule("a", "bad"), rule("b", "good")))))
    proxy = RefusingProxyPlane(frozenset({match("bad")}))
    proxy.publish(now)
    _settled(proxy, now)
    offered = []
    for _ in range(260):
        before = proxy.nacks
        proxy.later(5.0)
        _settled(proxy, now)
        offered += [proxy.now] * (proxy.nacks - before)
    assert offered == [10, 30, 70, 150, 310, 630, 1230]
    assert admitted(proxy.held) == {(80, "default/b", "good")}
