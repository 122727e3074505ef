"""Tests of Retries: the one in force for a call by policy, oracle and explanation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.explain import explain
from catalog.oracle.request.request import Request
from catalog.oracle.service_policies import tried_again
from catalog.policy.group_policy import proxy_policy
from catalog.policy.objects.retries import retry_of
from catalog.policy.values.proxy import ProxyPolicy
from catalog.relations.groups import groups
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import Port
from meshwright.mesh.policies.retries import Retries, Retry, RetryCondition
from tests.meshes import values as a

FIVE = Retries((RetryCondition.SERVER_ERROR,), 5)
ONE = Retries((RetryCondition.RESET, RetryCondition.CONNECT_FAILURE))
MESH = (
    a.service("shop"),
    a.service("bank"),
    a.service("raw", a.port(90, 9090, a.TCP)),
    a.workload("shop", "10.0.0.1"),
    a.workload("bank", "10.0.0.2"),
    a.workload("raw", "10.0.0.3"),
    a.workload("buyer", "10.0.0.4"),
    a.workload("other", "10.0.0.5"),
    *(
        a.target(f"{who}-{to}", who, to, a.http("all"), a.tcp("any"))
        for who in ("buyer", "other")
        for to in ("shop", "bank")
    ),
    a.target("raw", "buyer", "raw", a.tcp("any")),
    a.route_group("all", a.match("all", ".*")),
    a.tcp_route("any"),
)


def retry(name: str, retries: Retries = FIVE, *to: str, source: str = "buyer", created: str = "") -> Retry:
    """Make a Retry."""
    keys = tuple(a.service_key(item) for item in to or ("shop",))
    return Retry(a.policy_key(name), a.identity(source), keys, retries, created)


def policies(view: View) -> dict[str, ProxyPolicy]:
    """Return the policies by the names of primary services."""
    return {str(group.primary.name): proxy_policy(view, group) for group in groups(view)}


def tried(policy: ProxyPolicy) -> dict[str, Retries | None]:
    """Return the retries by the service that is called."""
    return {
        str(outbound_service.upstream).partition("/")[2]: outbound_service.retries
        for outbound_service in policy.outbound
    }


@pytest.mark.parametrize("permissive", [False, True])
def test_retry_applies_only_to_its_source_and_http_destinations(*, permissive: bool) -> None:
    """Other clients, other destinations and TCP ports are unaffected."""
    view = a.view(*MESH, MeshConfig(permissive=permissive), retry("r", FIVE, "shop", "raw"))
    proxy_policies = policies(view)
    assert tried(proxy_policies["buyer"]) == {"bank": None, "raw": None, "shop": FIVE}
    assert set(tried(proxy_policies["other"]).values()) == {None}
    plain = policies(a.view(*MESH, MeshConfig(permissive=permissive)))
    assert proxy_policies["other"] == plain["other"]
    assert proxy_policies["buyer"].destinations == plain["buyer"].destinations


def test_retry_in_a_permissive_mesh_leaves_the_shared_part_to_others() -> None:
    """Only the source has a part of its own, which differs in the destination of the Retry alone."""
    view = a.view(*MESH, MeshConfig(permissive=True), retry("r"))
    proxy_policies = policies(view)
    assert [reachable_services.common for reachable_services in proxy_policies["buyer"].reachable] == [False]
    assert [reachable_services.common for reachable_services in proxy_policies["other"].reachable] == [True]
    (mine,), (theirs,) = proxy_policies["buyer"].reachable, proxy_policies["other"].reachable
    assert [
        one.upstream for one, other in zip(mine.services, theirs.services, strict=True) if one != other
    ] == [a.service_key("shop")]


def test_retry_applies_in_explicit_interception() -> None:
    """The upstream of an explicit client has the Retry as in transparent interception."""
    explicit = a.workload(
        "buyer",
        "10.0.0.4",
        interception=a.explicit(None, ("shop", 80, "127.0.0.1", 8001), ("bank", 80, "127.0.0.1", 8002)),
    )
    others = tuple(item for item in MESH if getattr(item, "key", None) != explicit.key)
    proxy_policies = policies(a.view(*others, explicit, retry("r")))
    assert tried(proxy_policies["buyer"]) == {"bank": None, "shop": FIVE}


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([retry("a", ONE, created="2026-01-02T00:00:00Z")], FIVE),
        ([retry("a", ONE, created="2025-01-02T00:00:00Z")], ONE),
        ([retry("a", ONE)], FIVE),
        ([retry("a", ONE, "bank", created="2025-01-02T00:00:00Z")], FIVE),
    ],
)
def test_oldest_retry_for_the_service_is_in_force(others: list[Retry], expected: Retries) -> None:
    """A Retry without an age comes last, and an older one for another service has no effect."""
    view = a.view(*MESH, retry("z", created="2026-01-01T00:00:00Z"), *others)
    assert tried(policies(view)["buyer"])["shop"] == expected


RETRIES = st.lists(
    st.builds(
        retry,
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from([FIVE, ONE]),
        st.sampled_from(["shop", "bank"]),
        source=st.sampled_from(["buyer", "other"]),
        created=st.sampled_from(["", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
    ),
    max_size=3,
    unique_by=lambda item: item.key,
)


@given(RETRIES)
def test_policy_and_oracle_agree_on_retries(found: list[Retry]) -> None:
    """They agree for every source and service."""
    view = a.view(*MESH, *found)
    for client in map(a.identity, ("buyer", "other")):
        for key in map(a.service_key, ("shop", "bank")):
            assert tried_again(view, client, key) == retry_of(view, client, key)


def test_explanation_mentions_the_retry() -> None:
    """A step gives the Retry, the conditions and the number; without a Retry there is no step."""
    request = Request(a.identity("buyer"), a.service_key("shop"), Port(80))
    lines = [
        step.text
        for step in explain(a.view(*MESH, retry("r", Retries((RetryCondition.RESET,)))), request).steps
    ]
    assert [item for item in lines if "Retry" in item] == [
        "Retry default/r makes the client's sidecar retry requests that fail with reset, at most once."
    ]
    lines = [step.text for step in explain(a.view(*MESH), request).steps]
    assert [item for item in lines if "Retry" in item] == []
