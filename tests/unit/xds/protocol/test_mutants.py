"""Tests of the tests: each seeded fault in the state machine must make a named test fail.

The faults are made by replacing methods for the time of one test; no file changes. A property runs on a
fixed seed and a bounded number of examples.
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
from tests.unit.xds.protocol import test_named_subscriptions as named
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
        return [
            resource for resource in snapshot.living(type_url) if held.get(resource.name) == resource.version
        ]

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
        first = not self._has_requested and not subscribe
        return changed(self, (WILDCARD,) if first else subscribe, unsubscribe, there)

    patch.setattr(Subscription, "replace", replace_names)
    patch.setattr(Subscription, "change", change)


def _push_everything(patch: pytest.MonkeyPatch) -> None:
    original = Stream.on_snapshot

    def on_snapshot(self: Stream, snapshot: Snapshot) -> list[Response]:
        for channel in self._channels.values() if self._snapshot is not None else ():
            channel.must = channel.must.union(channel.client_versions)
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
        """Break the part of rule D12 that sends the neighbours of a rejected resource again."""

    patch.setattr(Channel, "_retry", retry)


def _lose_late_rejections(patch: pytest.MonkeyPatch) -> None:
    def late(self: Channel, nonce: Nonce, rejection: Rejection | None) -> None:
        """Break the part of rule W4 that records the answer to an overtaken response."""

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
    """Signal that as many examples were tried as are needed to find each fault."""


def _until(most: int | None, tried: Callable[..., None]) -> Callable[..., None]:
    """Return a test that raises _EnoughError after `most` examples."""
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
    """Return a function that runs a property on a fixed seed, on a given number of examples or on all.

    The seed is a digest of the text of `example`. After a change of that text, count again how many
    examples are needed.
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
SOTW_HOLDS = _property(properties.test_w15_w17_client_that_accepts_everything_holds_its_part_of_the_snapshot)
DELTA_HOLDS = _property(properties.test_d13_d18_client_that_accepts_everything_holds_its_part_of_the_snapshot)
MENDS = _property(properties.test_d12_w6_client_is_correct_after_only_the_bad_resources_change, BOTH)
HEALS = _property(properties.test_w6_d12_rejection_makes_no_loop_and_a_new_snapshot_heals_it, BOTH)
IN_ORDER = _property(properties.test_o2_o8_route_never_refers_to_a_cluster_that_the_client_lacks, BOTH)
NAMED_HOLD = _property(
    named.test_d7_d18_client_holds_the_listeners_and_clusters_that_it_subscribes_to, steps=named.steps
)
PROPERTIES = {SOTW_HOLDS: 30, DELTA_HOLDS: 160, MENDS: 45, HEALS: 30, IN_ORDER: 30, NAMED_HOLD: 55}
"""Properties, and how many examples find each fault of theirs: the negative control tries as many."""

MUTANTS: tuple[tuple[Callable[[pytest.MonkeyPatch], None], tuple[Red, ...]], ...] = (
    (_ignore_nonces, (sotw.test_w4_request_with_a_stale_nonce_is_ignored_and_the_ack_carries_the_names,)),
    (
        _drop_requests_with_stale_nonces,
        (delta.test_d2_stale_nonce_does_not_void_a_subscription, DELTA_HOLDS),
    ),
    (
        _resend_on_nack,
        (
            sotw.test_w6_nack_holds_the_version_back_and_its_new_names_are_answered,
            delta.test_d12_rejected_version_is_held_back_and_good_content_is_sent_again,
            MENDS,
        ),
    ),
    (_never_remove, (delta.test_d6_deleted_cluster_is_reported_as_removed, DELTA_HOLDS)),
    (_do_not_answer_again, (delta.test_d3_name_requested_again_is_sent_again,)),
    (
        _empty_is_everything,
        (
            sotw.test_w13_first_request_without_names_subscribes_to_nothing_for_other_types,
            delta.test_d8_first_request_without_names_subscribes_to_nothing_for_other_types,
        ),
    ),
    (
        _push_everything,
        (
            sotw.test_w10_endpoint_response_lists_only_changed_endpoints,
            delta.test_d5_only_the_changed_one_of_a_hundred_resources_is_sent,
            delta.test_d17_equal_snapshot_sends_no_response,
            SOTW_HOLDS,
            DELTA_HOLDS,
        ),
    ),
    (
        _leave_endpoints_behind,
        (
            sotw.test_o3_changed_cluster_is_followed_by_its_endpoints,
            delta.test_o3_changed_cluster_is_followed_by_its_endpoints,
        ),
    ),
    (
        _remove_first,
        (
            sotw.test_o2_old_cluster_is_removed_only_after_the_routes_have_switched,
            delta.test_o2_old_cluster_is_removed_only_after_the_routes_have_switched,
            IN_ORDER,
        ),
    ),
    (
        _take_a_rejection_for_leave,
        (
            sotw.test_o2_old_cluster_remains_while_the_new_route_is_rejected,
            delta.test_o2_old_cluster_remains_while_the_new_route_is_rejected,
        ),
    ),
    (
        _let_what_waits_die,
        (
            partial(special.test_n5_heartbeat_is_for_the_older_version_that_the_client_holds, ttl=60.0),
            NAMED_HOLD,
        ),
    ),
    (
        _take_back_what_is_asked_for,
        (special.test_n7_client_that_names_a_cluster_before_its_removal_keeps_it,),
    ),
    (
        _forget_who_was_passed_over,
        (sotw.test_w4_w8_name_dropped_and_requested_again_during_a_push_is_answered_again,),
    ),
    (
        _do_not_wait_for_clusters,
        (
            sotw.test_o1_o5_push_sends_clusters_and_endpoints_before_listeners_and_routes,
            delta.test_o1_o5_push_sends_clusters_and_endpoints_before_listeners_and_routes,
        ),
    ),
    (_answer_from_nothing, (sotw.test_s12_requests_before_the_first_snapshot_are_answered_by_it,)),
    (
        _forget_who_stood_beside,
        (sotw.test_d12_neighbours_of_a_bad_resource_are_sent_again_after_its_change, MENDS),
    ),
    (_lose_late_rejections, (sotw.test_w4_w6_late_rejection_is_recorded,)),
    (_believe_what_is_held, (delta.test_o4_endpoints_are_sent_on_a_new_stream_whatever_the_client_holds,)),
)


@pytest.mark.parametrize(
    ("mutate", "red"),
    [
        pytest.param(mutate, red, id=f"{mutate.__name__.strip('_')}-{getattr(red, '__name__', '')[:40]}")
        for mutate, reds in MUTANTS
        for red in reds
    ],
)
def test_seeded_fault_makes_the_named_test_fail(
    make: Make, mutate: Callable[[pytest.MonkeyPatch], None], red: Red
) -> None:
    """A test that passes with the fault could not detect it."""
    with pytest.MonkeyPatch.context() as patch:
        mutate(patch)
        with pytest.raises(AssertionError):
            red(make)


@pytest.mark.fuzzed
@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__[:40])
def test_properties_pass_on_the_same_examples_without_a_fault(make: Make, holds: Any) -> None:
    """This proves that the fault causes the failure. All 800 examples are tried in `make fuzz`."""
    holds(make, PROPERTIES[holds] if examples(1) == 1 else None)
