"""Tests of policy without some units: it never admits more, and other units stay."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from catalog.policy.exclusions import narrowed, without
from catalog.policy.units import unit_id, units
from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.inbound import AccessRule, EveryoneInTheMesh, InboundPort, OnlyRules
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ProxyPolicy
from catalog.policy.values.route_actions import Forward
from catalog.policy.values.route_table import AppliedSplit
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimit, RateLimits, RateUnit
from meshwright.mesh.policies.retries import Retries, RetryCondition
from meshwright.mesh.policies.smi import HeaderMatch, HTTPMatch
from meshwright.mesh.policies.upstreams import HashKey, HealthCheck, KeyKind, OutlierDetectionOverride
from meshwright.mesh.service import Protocol
from tests.meshes.route_entries import entry
from tests.unit.delivery.quarantine.refusing_proxy import (
    SHOP,
    admitted,
    covers,
    identity,
    match,
    policy,
    port,
    rule,
    snapshot,
    split,
)
from tests.unit.delivery.quarantine.test_excluded_units import policies


@given(policies(), st.data())
def test_policy_without_units_admits_no_more_and_keeps_the_other_units(
    of: ProxyPolicy, data: st.DataObject
) -> None:
    """For random policies, exactly the units left out are gone, and admitted requests are a subset."""
    every = sorted({*units(of)}, key=repr)
    out = frozenset(data.draw(st.sets(st.sampled_from(every)))) if every else frozenset()
    less = without(of, out)
    assert {*units(less)} == {*units(of)} - out
    assert covers(admitted(snapshot(of)), admitted(snapshot(less)))
    assert without(of, frozenset()) == of


@given(policies(), policies())
def test_narrowed_policy_admits_only_what_both_policies_admit(one: ProxyPolicy, other: ProxyPolicy) -> None:
    """A policy narrowed by itself stays the same, and without a second policy it admits nothing."""
    both = admitted(snapshot(narrowed(one, other)))
    assert covers(admitted(snapshot(one)), both)
    assert covers(admitted(snapshot(other)), both)
    assert narrowed(one, one) == one
    assert admitted(snapshot(narrowed(one, None))) == frozenset()


def test_rule_without_its_last_match_is_removed() -> None:
    """An empty list of matches would admit every request, so the rule itself goes."""
    before = port(80, Protocol.HTTP, OnlyRules((rule("a", "x"), rule("b", "x", "y"))))
    after = without(before, frozenset({match("x")}))
    assert after == port(80, Protocol.HTTP, OnlyRules((rule("b", "y"),)))


def test_excluded_permissive_mode_admits_no_further_caller() -> None:
    """Permissive mode is a unit as well, and without it no rule is left."""
    before = port(80, Protocol.HTTP, EveryoneInTheMesh())
    assert without(before, frozenset({EveryoneInTheMesh()})).access == OnlyRules()


def test_requests_of_a_left_out_split_for_all_requests_fail() -> None:
    """The last entry is for all requests. If it was that of the split, it has no backends."""
    (called,) = policy(splits=[split("t", "x"), split("s")]).outbound
    units_of_splits = [unit for unit in units(called) if isinstance(unit, AppliedSplit)]
    assert [str(unit.by) for unit in units_of_splits] == ["default/s"]
    assert without(called, {*units_of_splits}).table == (split("t", "x"), entry())


def test_excluded_retry_leaves_the_rest_of_the_policy() -> None:
    """The result is the policy without a Retry, and another Retry stays."""
    five, one = Retries((RetryCondition.SERVER_ERROR,), 5), Retries((RetryCondition.RESET,))
    of = policy(splits=[split("s", "x")], retries=five)
    assert {*units(of)} == {match("x"), five}
    assert without(of, frozenset({five})) == policy(splits=[split("s", "x")])
    assert without(of, frozenset({one})) == of


def test_each_limit_is_left_out_by_itself() -> None:
    """Access stays the same, and so do the other limits and checks."""
    rates, limits = RateLimits(requests=RateLimit(5, RateUnit.SECOND)), ConnectionLimits(connections=1)
    ejecting, checking = OutlierDetectionOverride(failures=3), HealthCheck("/well")
    bare = port(80, Protocol.HTTP, OnlyRules((rule("a", "x"),)))
    limited = replace(bare, rates=rates)
    assert {*units(limited)} == {rates, match("x")}
    assert without(limited, {rates}) == bare
    assert {*units(bare)} == {match("x")}

    plain = ServiceDestination(SHOP, "80", True, "shop", (identity("shop"),), ())
    every = replace(plain, limits=limits, ejecting=ejecting, checking=checking)
    assert ([*units(plain)], {*units(every)}) == ([], {limits, ejecting, checking})
    assert without(every, {limits}) == replace(every, limits=ConnectionLimits())
    assert without(every, {ejecting}) == replace(every, ejecting=None)
    assert without(every, {checking}) == replace(every, checking=None)
    assert without(every, {limits, ejecting, checking, rates}) == plain


def test_excluded_hash_key_leaves_other_keys_and_matches() -> None:
    """Only the key that is left out is removed from the routes."""
    key, other = HashKey(KeyKind.HEADER, "x-user"), HashKey(KeyKind.QUERY, "user")
    (called,) = policy(splits=[split("s", "x")]).outbound
    keyed = _keyed(called, key, other)
    assert {*units(keyed)} == {match("x"), key, other}
    assert without(keyed, {key}) == _keyed(called, other)


def _keyed(called: OutboundService, *keys: HashKey) -> OutboundService:
    return replace(
        called,
        table=tuple(
            replace(of, action=replace(of.action, keys=keys)) if isinstance(of.action, Forward) else of
            for of in called.table
        ),
    )


def test_narrowed_rules_of_one_target_keep_common_callers_and_matches() -> None:
    """Callers, matches and targets that only one of the policies has are removed."""

    def access(sources: str, *matches: str) -> InboundPort:
        one = rule("a", *matches)
        named = AccessRule(one.by, tuple(map(identity, sources)), one.matches)
        return port(80, Protocol.HTTP, OnlyRules((named,)))

    assert narrowed(access("pq", "x", "y"), access("qr", "y", "z")) == access("q", "y")
    assert narrowed(access("p"), access("p", "y")) == access("p", "y"), (
        "everything is narrowed to what is named"
    )
    assert narrowed(access("p", "x"), access("p")) == access("p", "x")
    assert narrowed(access("p", "x"), access("q", "x")).access == OnlyRules()


def test_unit_id_depends_on_the_content_alone_in_every_process() -> None:
    """The id is stored over restarts, so another algorithm would lose what is known of a unit."""
    http_match = HTTPMatch("it", "/x", ("GET",), (HeaderMatch("a", "b"),))
    assert unit_id(http_match) == unit_id(HTTPMatch("it", "/x", ("GET",), (HeaderMatch("a", "b"),)))
    assert unit_id(http_match) != unit_id(HTTPMatch("it", "/y", ("GET",), (HeaderMatch("a", "b"),)))
    assert unit_id(EveryoneInTheMesh()) == "c70eb434223d2ad33636606619ab85f2"
