"""Seeded faults: each is put into the machine and must turn a named test red.

The faults are made by replacing methods for the time of one test; no file changes. Where the red test is a
property, it runs on a fixed seed and a bounded number of examples.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.tools.hypothesis_profiles import examples
from tests.unit.xds.protocol import test_conversations as properties
from tests.unit.xds.protocol import test_delta_rules as delta
from tests.unit.xds.protocol import test_named as named
from tests.unit.xds.protocol import test_sotw_rules as sotw
from tests.unit.xds.protocol import test_special_resources as special
from xds.protocol.delta import DeltaStream
from xds.protocol.resources.layers import Layers
from xds.protocol.resources.name_sets import Names, joined
from xds.protocol.resources.resource import Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.sotw import AdsStream
from xds.protocol.stream import Stream
from xds.protocol.subscription import WILDCARD, Change, Subscription
from xds.protocol.type_state import Channel
from xds.protocol.wire import DeltaRequest, Nonce, Rejection, Request, Response

Make = Callable[..., Resource]
Red = Callable[[Make], object]
Asked = tuple[ResourceName, ...]


def _ignore_nonces(patch: pytest.MonkeyPatch) -> None:
    original = AdsStream.on_request

    def on_request(self: AdsStream, request: Request) -> list[Response]:
        channel = self._channels.get(request.type_url)
        last = channel.sent_nonce if channel is not None else None
        return original(self, replace(request, nonce=last) if last else request)

    patch.setattr(AdsStream, "on_request", on_request)


def _drop_requests_with_stale_nonces(patch: pytest.MonkeyPatch) -> None:
    original = DeltaStream.on_request

    def on_request(self: DeltaStream, request: DeltaRequest) -> list[Response]:
        channel = self._channels.get(request.type_url)
        last = channel.sent_nonce if channel is not None else None
        if request.nonce and last and request.nonce != last:
            return []
        return original(self, request)

    patch.setattr(DeltaStream, "on_request", on_request)


def _resend_on_nack(patch: pytest.MonkeyPatch) -> None:
    original = Channel.answered

    def answered(self: Channel, nonce: Nonce, rejection: Rejection | None) -> None:
        response = self.awaiting(nonce)
        original(self, nonce, rejection)
        if rejection is not None and response is not None:
            self.must = self.must.union(resource.name for resource in response.resources)

    patch.setattr(Channel, "answered", answered)


def _never_remove(patch: pytest.MonkeyPatch) -> None:
    original = Channel.sent

    def sent(self: Channel, response: Response, *, supersedes: bool) -> None:
        object.__setattr__(response, "removed", ())
        original(self, response, supersedes=supersedes)

    patch.setattr(Channel, "sent", sent)


def _take_a_rejection_for_leave(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Stream, "_is_refused", lambda _: False)


def _let_what_waits_die(patch: pytest.MonkeyPatch) -> None:
    def newest_alone(
        type_url: TypeUrl, lives: object, held: Mapping[ResourceName, Version], snapshot: Snapshot
    ) -> list[Resource]:
        del lives
        return [each for each in snapshot.living(type_url) if held.get(each.name) == each.version]

    patch.setattr("xds.protocol.delta.kept_alive", newest_alone)


def _take_back_what_is_asked_for(patch: pytest.MonkeyPatch) -> None:
    def ask(self: Channel, names: Names) -> None:
        self.must = joined(self.must, names)

    patch.setattr(Channel, "ask", ask)


def _forget_who_was_passed_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Subscription, "lacking", lambda _, names: frozenset(names[:0]))


def _do_not_answer_again(patch: pytest.MonkeyPatch) -> None:
    original = Subscription.change

    def change(
        self: Subscription, subscribe: Asked, unsubscribe: Asked, there: Layers[ResourceName, Any]
    ) -> Change:
        known = frozenset(self.names)
        made = original(self, subscribe, unsubscribe, there)
        return replace(made, added=made.added - known)

    patch.setattr(Subscription, "change", change)


def _empty_is_everything(patch: pytest.MonkeyPatch) -> None:
    replaced, changed = Subscription.replace, Subscription.change

    def replace_names(self: Subscription, names: Asked, there: Layers[ResourceName, Any]) -> Change:
        return replaced(self, names or (WILDCARD,), there)

    def change(
        self: Subscription, subscribe: Asked, unsubscribe: Asked, there: Layers[ResourceName, Any]
    ) -> Change:
        first = not self._asked and not subscribe
        return changed(self, (WILDCARD,) if first else subscribe, unsubscribe, there)

    patch.setattr(Subscription, "replace", replace_names)
    patch.setattr(Subscription, "change", change)


def _push_everything(patch: pytest.MonkeyPatch) -> None:
    original = Stream.on_snapshot

    def on_snapshot(self: Stream, snapshot: Snapshot) -> list[Response]:
        for channel in self._channels.values() if self._snapshot is not None else ():
            channel.must = channel.must.union(channel.held)
        return original(self, snapshot)

    patch.setattr(Stream, "on_snapshot", on_snapshot)


def _leave_endpoints_behind(patch: pytest.MonkeyPatch) -> None:
    def nothing(self: Stream, clusters: Iterable[Resource]) -> None:
        """Break rule O3."""

    patch.setattr(Stream, "_follow_with_endpoints", nothing)


def _remove_first(patch: pytest.MonkeyPatch) -> None:
    original = Stream._flush

    def flush(self: Stream) -> list[Response]:
        broken = self._break(self._snapshot) if self._snapshot is not None else []
        return broken + original(self)

    patch.setattr(Stream, "_flush", flush)


def _do_not_wait_for_clusters(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Stream, "_is_closed", lambda self, type_urls: False)


def _answer_from_nothing(patch: pytest.MonkeyPatch) -> None:
    original = Stream._flush

    def flush(self: Stream) -> list[Response]:
        if self._snapshot is None:
            self._snapshot = Snapshot.of(())
        return original(self)

    patch.setattr(Stream, "_flush", flush)


def _forget_who_stood_beside(patch: pytest.MonkeyPatch) -> None:
    def retry(self: Channel) -> None:
        """Break the part of rule D12 that sends again what a rejection has cost."""

    patch.setattr(Channel, "_retry", retry)


def _lose_late_rejections(patch: pytest.MonkeyPatch) -> None:
    def late(self: Channel, nonce: Nonce, rejection: Rejection | None) -> None:
        """Break the part of rule W4 that remembers what an overtaken response was told."""

    patch.setattr(Channel, "answered_late", late)


def _believe_what_is_held(patch: pytest.MonkeyPatch) -> None:
    original = DeltaStream._resume

    def resume(
        self: DeltaStream, channel: Channel, request: DeltaRequest, asked: frozenset[ResourceName]
    ) -> None:
        original(self, channel, request, asked)
        channel.must -= request.initial_versions.keys()

    patch.setattr(DeltaStream, "_resume", resume)


_QUICK = settings(
    derandomize=True,
    database=None,
    max_examples=examples(200),
    deadline=None,
    phases=(Phase.generate,),
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


class _EnoughError(Exception):
    """So many examples were tried as find each fault."""


def _until(most: int | None, tried: Callable[..., None]) -> Callable[..., None]:
    """Return a test that ends all after so many examples."""
    count = itertools.count(1)

    def counted(*drawn: object) -> None:
        tried(*drawn)
        if most is not None and next(count) >= most:
            raise _EnoughError

    return counted


def _property(
    test: Callable[..., None],
    *more: st.SearchStrategy[bool],
    steps: st.SearchStrategy[Any] = properties.steps,
) -> Red:
    """Return a property's test as a function that runs it on a fixed seed, on so many examples or on all.

    The seed is a digest of the text of `example`: after a change of that text, count again how many it takes.
    """

    def run(make: Make, most: int | None = None) -> None:
        inner = _until(most, cast("Any", test).hypothesis.inner_test)

        @_QUICK
        @given(st.tuples(steps, *more))
        def example(drawn: tuple[object, ...]) -> None:
            inner(make, *drawn)

        with contextlib.suppress(_EnoughError):
            example()

    run.__name__ = test.__name__
    return run


BOTH = st.booleans()
SOTW_HOLDS = _property(
    properties.test_w15_w17_who_accepts_everything_holds_the_subscribed_part_of_the_snapshot
)
DELTA_HOLDS = _property(
    properties.test_d13_d18_who_accepts_everything_holds_the_subscribed_part_of_the_snapshot
)
MENDS = _property(properties.test_d12_w6_only_the_bad_needs_mending, BOTH)
HEALS = _property(properties.test_w6_d12_a_rejection_never_makes_a_loop_and_a_new_snapshot_heals, BOTH)
IN_ORDER = _property(properties.test_o2_o8_references_are_never_broken_by_order, BOTH)
NAMED_HOLD = _property(
    named.test_d7_d18_whoever_names_listeners_and_clusters_has_what_it_asks_for, steps=named.steps
)
PROPERTIES = {SOTW_HOLDS: 30, DELTA_HOLDS: 160, MENDS: 45, HEALS: 30, IN_ORDER: 30, NAMED_HOLD: 55}
"""Properties, and how many examples find each fault of theirs: the negative control tries as many."""

MUTANTS: tuple[tuple[Callable[[pytest.MonkeyPatch], None], tuple[Red, ...]], ...] = (
    (_ignore_nonces, (sotw.test_w4_a_stale_nonce_changes_nothing_and_the_ack_brings_the_names,)),
    (
        _drop_requests_with_stale_nonces,
        (delta.test_d2_a_stale_nonce_does_not_void_a_subscription, DELTA_HOLDS),
    ),
    (
        _resend_on_nack,
        (
            sotw.test_w6_a_nack_parks_and_still_honours_names,
            delta.test_d12_a_nack_parks_and_the_good_content_is_sent_when_it_returns,
            MENDS,
        ),
    ),
    (_never_remove, (delta.test_d6_a_deleted_cluster_is_removed, DELTA_HOLDS)),
    (_do_not_answer_again, (delta.test_d3_asked_for_again_is_sent_again,)),
    (
        _empty_is_everything,
        (
            sotw.test_w13_no_names_mean_nothing_for_other_types,
            delta.test_d8_no_names_mean_nothing_for_other_types,
        ),
    ),
    (
        _push_everything,
        (
            sotw.test_w10_an_endpoint_answer_lists_what_changed,
            delta.test_d5_one_of_a_hundred_changes,
            delta.test_d17_an_equal_snapshot_is_silence,
            SOTW_HOLDS,
            DELTA_HOLDS,
        ),
    ),
    (
        _leave_endpoints_behind,
        (
            sotw.test_o3_a_changed_cluster_is_followed_by_its_endpoints,
            delta.test_o3_a_changed_cluster_is_followed_by_its_endpoints,
        ),
    ),
    (
        _remove_first,
        (
            sotw.test_o2_an_old_cluster_goes_only_when_the_routes_have_switched,
            delta.test_o2_an_old_cluster_goes_only_when_the_routes_have_switched,
            IN_ORDER,
        ),
    ),
    (
        _take_a_rejection_for_leave,
        (
            sotw.test_o2_an_old_cluster_stays_while_the_new_route_is_refused,
            delta.test_o2_an_old_cluster_stays_while_the_new_route_is_refused,
        ),
    ),
    (
        _let_what_waits_die,
        (partial(special.test_n5_who_holds_an_older_version_is_told_to_keep_that, ttl=60.0), NAMED_HOLD),
    ),
    (
        _take_back_what_is_asked_for,
        (special.test_n7_who_names_it_before_it_was_taken_back_keeps_it,),
    ),
    (
        _forget_who_was_passed_over,
        (sotw.test_w4_w8_a_name_dropped_and_asked_for_again_while_a_push_is_on_its_way_is_answered_again,),
    ),
    (
        _do_not_wait_for_clusters,
        (
            sotw.test_o1_o5_a_push_goes_clusters_endpoints_then_listeners_and_routes,
            delta.test_o1_o5_a_push_goes_clusters_endpoints_then_listeners_and_routes,
        ),
    ),
    (_answer_from_nothing, (sotw.test_s12_nothing_is_answered_before_there_is_a_snapshot,)),
    (
        _forget_who_stood_beside,
        (sotw.test_d12_what_stood_beside_a_bad_resource_is_sent_again_when_that_changes, MENDS),
    ),
    (_lose_late_rejections, (sotw.test_w4_w6_a_rejection_that_comes_late_is_not_lost,)),
    (_believe_what_is_held, (delta.test_o4_endpoints_are_sent_on_a_new_stream_whatever_is_held,)),
)


@pytest.mark.parametrize(
    ("mutate", "red"),
    [
        pytest.param(mutate, red, id=f"{mutate.__name__.strip('_')}-{getattr(red, '__name__', '')[:40]}")
        for mutate, reds in MUTANTS
        for red in reds
    ],
)
def test_a_seeded_fault_turns_a_test_red(
    make: Make, mutate: Callable[[pytest.MonkeyPatch], None], red: Red
) -> None:
    """With the fault the named test fails."""
    with pytest.MonkeyPatch.context() as patch:
        mutate(patch)
        with pytest.raises(AssertionError):
            red(make)


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__[:40])
def test_without_a_fault_the_same_examples_are_green(make: Make, holds: Any) -> None:
    """So it is the fault that turns them red. All 800 examples are tried in `make fuzz`."""
    holds(make, PROPERTIES[holds] if examples(1) == 1 else None)
