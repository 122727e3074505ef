"""Tests of the budget that all calls of one certificate share, without a clock or a transport."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xds.budget import ENTRY_BYTES, TYPE_BYTES, Account, Accounts, Bill, Cost, Excess, LimitKind, Share, cost
from xds.limits import Limits
from xds.protocol.delta import DeltaStream
from xds.protocol.resources.name_sets import first_of
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.sotw import AdsStream
from xds.protocol.subscription import Subscription
from xds.protocol.type_state import Channel
from xds.protocol.wire import DeltaRequest, Nonce, Request

OTHER = TypeUrl("type.googleapis.com/other")
FEW = st.frozensets(st.sampled_from([ResourceName(f"n{n}é"[: n % 4 + 2]) for n in range(12)] + ["*"]))


def names(*texts: str) -> tuple[ResourceName, ...]:
    """Convert strings to resource names."""
    return tuple(map(ResourceName, texts))


def test_calls_of_one_certificate_share_its_budget() -> None:
    """A name taken by one call is unavailable to the other until the first call ends or releases it."""
    account = Account(Limits(names_per_certificate=10))
    one, two = Bill(account), Bill(account)
    one.charge(CLUSTER, Cost(names=6))
    two.charge(CLUSTER, Cost(names=4))

    with pytest.raises(Excess) as over:
        two.charge(ENDPOINT, Cost(names=1))
    assert (over.value.bound, over.value.value, over.value.limit) == (LimitKind.NAMES, 11, 10)
    assert str(over.value) == "11 resource names with one certificate; 10 are allowed"
    two.settle()
    one.charge(CLUSTER, Cost(names=10))
    one.settle()
    assert account.taken == Cost()


def test_equal_costs_are_one_shared_object() -> None:
    """Two streams with equally large subscriptions share one Cost object, which saves memory."""
    channels = [Channel(CLUSTER, Subscription(CLUSTER)) for _ in range(2)]
    for channel in channels:
        channel.subscription.change(names("a", "b"), ())
    assert cost(channels[0]) is cost(channels[1])
    assert cost(channels[0]).names == 2


def test_refused_charge_leaves_the_budget_of_other_calls_unchanged() -> None:
    """A refused charge is added to no bill, so another call can still use the rest of the budget."""
    account = Account(Limits(names_per_certificate=10))
    one, two = Bill(account), Bill(account)
    one.charge(CLUSTER, Cost(names=6))
    two.charge(CLUSTER, Cost(names=3))
    with pytest.raises(Excess):
        two.charge(ENDPOINT, Cost(names=2))
    with pytest.raises(Excess):
        two.charge(CLUSTER, Cost(names=5))
    one.charge(CLUSTER, Cost(names=7))
    assert account.taken == Cost(names=10)
    two.settle()
    assert account.taken == Cost(names=7)


@pytest.mark.parametrize(
    ("limits", "over", "bound"),
    [
        (Limits(types_per_certificate=1), Cost(types=2), LimitKind.TYPES),
        (Limits(names_per_certificate=1), Cost(names=2), LimitKind.NAMES),
        (Limits(bytes_per_certificate=1), Cost(bytes=2), LimitKind.BYTES),
    ],
)
def test_each_bound_is_enforced_and_can_be_removed(limits: Limits, over: Cost, bound: LimitKind) -> None:
    """A cost at the bound is accepted, and a cost above it is refused.

    Without budgets any cost is accepted.
    """
    with pytest.raises(Excess) as exception_info:
        Bill(Account(limits)).charge(CLUSTER, over)
    assert exception_info.value.bound is bound
    Bill(Account(limits)).charge(CLUSTER, Cost(*(number // 2 for number in over)))
    Bill(Account(limits.without_budgets())).charge(CLUSTER, Cost(10**9, 10**9, 10**9))


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.integers(0, 9)), max_size=30))
def test_account_total_equals_the_sum_of_its_bills(steps: list[tuple[int, str, int]]) -> None:
    """The total is the sum of all charges in force, after any series of charges and releases."""
    account = Account(Limits().without_budgets())
    bills = [Bill(account) for _ in range(3)]
    held: dict[tuple[int, str], int] = {}
    for number, item, size in steps:
        if size:
            bills[number].charge(item, Cost(bytes=size))
            held[number, item] = size
        else:
            bills[number].release(item)
            held.pop((number, item), None)

    assert account.taken.bytes == sum(held.values())
    for bill in bills:
        bill.settle()
    assert account.taken == Cost()


@given(st.lists(st.tuples(FEW, FEW, st.booleans()), max_size=12))
def test_incremental_subscription_cost_equals_its_names_and_pending_removals(
    steps: list[tuple[frozenset[ResourceName], frozenset[ResourceName], bool]],
) -> None:
    """After every request, the cost covers subscribed names and reported removals without an answer."""
    stream = DeltaStream()
    stream.on_snapshot(Snapshot.of(()))
    for subscribe, unsubscribe, answers in steps:
        stream.on_request(DeltaRequest(OTHER, tuple(subscribe), tuple(unsubscribe)))
        channel = stream.channel(OTHER)
        for nonce in tuple(item.nonce for item in channel.unanswered) if answers else ():
            stream.on_request(DeltaRequest(OTHER, nonce=nonce))
        resource_names = [name for response in channel.unanswered for name in response.removed]
        held = channel.subscription.names
        text = sum(resource_name.__sizeof__() for resource_name in (*held, *resource_names))
        assert cost(channel) == Cost(1, len(held), TYPE_BYTES + len(held) * ENTRY_BYTES + text)


@given(st.lists(FEW, max_size=12))
def test_state_of_the_world_subscription_cost_equals_its_newest_names(
    steps: list[frozenset[ResourceName]],
) -> None:
    """Only the names of the newest request are charged, because each request carries the complete list."""
    stream = AdsStream()
    for wanted in steps:
        stream.on_request(Request(OTHER, tuple(wanted)))
        channel = stream.channel(OTHER)
        held = wanted - {"*"}
        text = sum(resource_name.__sizeof__() for resource_name in held)
        assert cost(channel) == Cost(1, len(held), TYPE_BYTES + len(held) * ENTRY_BYTES + text)


def test_initial_versions_of_a_client_are_charged() -> None:
    """The cost includes the versions that the client reports, also for names without a subscription."""
    stream = DeltaStream()
    held = {name: Version("v" * 40) for name in names("a", "b")}
    stream.on_request(DeltaRequest(ENDPOINT, names("*", "a"), initial_versions=held))

    text = sum(item.__sizeof__() for item in ("a", "b", "v" * 40, "v" * 40))
    assert cost(stream.channel(ENDPOINT)) == Cost(1, 3, TYPE_BYTES + 3 * ENTRY_BYTES + text)


def test_absent_names_are_sent_in_parts_after_each_answer() -> None:
    """Absent names are reported at once and in order (D4), in parts of at most 64 KiB.

    The next part follows the answer to the previous one; a short list needs one part.
    """
    stream = DeltaStream()
    stream.on_snapshot(Snapshot.of(()))
    wanted = sorted(names(*(f"{n:05}" + "x" * 600 for n in range(250))))
    resource_names: list[ResourceName] = []
    responses = stream.on_request(DeltaRequest(OTHER, tuple(wanted)))
    parts = 0
    while responses:
        assert len(responses) == 1
        parts += 1
        resource_names += responses[0].removed
        assert sum(resource_name.__sizeof__() for resource_name in responses[0].removed) <= 64 * 1024
        responses = stream.on_request(DeltaRequest(OTHER, nonce=responses[0].nonce))

    assert resource_names == wanted
    assert parts == 3
    few = DeltaStream()
    few.on_snapshot(Snapshot.of(()))
    assert [
        len(response.removed) for response in few.on_request(DeltaRequest(OTHER, tuple(wanted[:90])))
    ] == [90]


@pytest.mark.parametrize("type_url", [OTHER, LISTENER, CLUSTER])
def test_all_removals_reach_a_reconnecting_client_in_parts(type_url: TypeUrl) -> None:
    """A client that reconnects with many deleted resources receives the removal of each of them."""
    stream = DeltaStream()
    stream.on_snapshot(Snapshot.of(()))
    held = {ResourceName(f"{n:05}" + "x" * 600): Version("1") for n in range(250)}
    resource_names: list[ResourceName] = []
    responses = stream.on_request(DeltaRequest(type_url, names("*"), initial_versions=held))
    while responses:
        resource_names += [name for response in responses for name in response.removed]
        responses = stream.on_request(DeltaRequest(type_url, nonce=responses[-1].nonce))

    assert resource_names == sorted(held)


@given(st.lists(st.text(max_size=5).map(ResourceName), unique=True), st.integers(0, 400))
def test_first_names_are_as_many_as_fit_and_at_least_one(found: list[ResourceName], room: int) -> None:
    """The result is the longest sorted prefix that fits.

    One name is always taken, or sending would never end.
    """
    first = first_of(found, room)

    assert first == sorted(found)[: len(first)]
    assert len(first) <= 1 or sum(resource_name.__sizeof__() for resource_name in first) <= room
    more = sorted(found)[: len(first) + 1]
    assert len(more) == len(first) or (
        first and sum(resource_name.__sizeof__() for resource_name in more) > room
    )


def test_share_allows_a_burst_and_then_a_rate() -> None:
    """A burst of 0.1 seconds is free; a larger use is paid back at a fifth of the elapsed time."""
    share = Share(0.2, 0.1)

    assert share.wait(50.0) == 0.0
    share.spend(0.05, 50.0)
    assert share.wait(50.0) == 0.0
    share.spend(0.25, 50.0)
    assert share.wait(50.0) == pytest.approx(1.0)
    assert share.wait(50.75) == pytest.approx(0.25)
    assert share.wait(51.0) == pytest.approx(0.0)
    assert not share.is_full(51.0)
    assert share.is_full(51.6)


def test_share_limits_long_use_to_its_rate() -> None:
    """A caller that takes 30 ms whenever it is allowed to gets 720 seconds of an hour, a fifth."""
    share, now, taken = Share(0.2, 0.1), 1000.0, 0.0
    while now < 4600.0:
        now += share.wait(now)
        share.spend(0.03, now)
        taken, now = taken + 0.03, now + 0.03

    assert taken == pytest.approx(720, rel=0.01)


def test_share_without_a_rate_never_waits() -> None:
    """With a rate of None, even 1000 seconds of use cause no wait."""
    share = Share(None, 0.1)
    share.spend(1000.0, 1.0)

    assert share.wait(1.0) == 0.0


def test_account_with_debt_is_kept_for_a_reconnecting_client() -> None:
    """An account is forgotten only without calls and debt.

    Otherwise each new connection would get a new burst.
    """
    accounts = Accounts(Limits(loop_share=0.5, loop_burst_seconds=0.1))
    account = accounts.account(b"one")
    account.streams = 1
    account.share.spend(1.0, 10.0)
    accounts.forget(10.0)
    assert accounts.account(b"one") is account
    account.streams = 0
    accounts.forget(11.0)
    assert accounts.account(b"one").share.wait(11.0) == pytest.approx(0.8 - 0.0, abs=0.2)
    accounts.forget(20.0)

    assert len(accounts) == 0
    assert accounts.account(b"one") is not account


def test_unknown_nonce_releases_no_cost() -> None:
    """A nonce that was never issued acknowledges no response, so pending removals remain charged."""
    stream = DeltaStream()
    stream.on_snapshot(Snapshot.of(()))
    stream.on_request(DeltaRequest(OTHER, names("a")))
    before = cost(stream.channel(OTHER))
    stream.on_request(DeltaRequest(OTHER, nonce=Nonce("77")))

    assert cost(stream.channel(OTHER)) == before
