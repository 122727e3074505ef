"""Tests of Events by complete values: one for each problem, rarely renewed, and one for its resolution."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from meshwright.kubernetes.status.event import (
    RENEWED,
    Action,
    EventAction,
    EventReporter,
    WrittenEvent,
    again,
    begun,
    body,
    due,
    more,
    notices,
    read,
    series,
)
from meshwright.mesh.kinds import NAMESPACE, SERVICE, TRAFFIC_TARGET
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
KEY = ObjectKey(TRAFFIC_TARGET, Namespace("shop"), "buyers")
API = "access.smi-spec.io/v1alpha3"
METADATA = {"name": "buyers", "namespace": "shop", "uid": "u-1", "resourceVersion": "9"}


def problem(value: str = "a(", code: str = "resource-rejected", expected: str = "p1 rejects it") -> Problem:
    """Return a problem of the target."""
    return Problem(
        code=code,
        severity=Severity.ERROR,
        origin=InCluster("east", "7"),
        key=KEY,
        field="spec.rules[0]",
        value=value,
        expected=expected,
    )


def told_of(*item: WrittenEvent) -> dict[tuple[str, bool], WrittenEvent]:
    """Return written Events by their key."""
    return {written_event.known_as: written_event for written_event in item}


def acts(actions: Iterable[Action]) -> list[tuple[EventAction, str, str]]:
    """Return action, reason and note of each due action."""
    return [(action.act, action.notice.reason, action.notice.note) for action in actions]


NOTE = "spec.rules[0] is a(: p1 rejects it"
ONE = next(iter(notices(KEY, [problem()]).values()))
BEGUN = begun(ONE, "u-1", NOW)
MENDED = begun(ONE.mended(), "u-1", NOW + timedelta(minutes=1))


def test_problem_begins_one_event_that_is_renewed_only_when_due() -> None:
    """The Event is left alone until its renewal is due, before the API server would delete it."""
    answer = notices(KEY, [problem()])
    assert acts(due(answer, {}, NOW)) == [(EventAction.BEGIN, "ResourceRejected", NOTE)]
    assert acts(due(answer, told_of(BEGUN), NOW + RENEWED - timedelta(seconds=1))) == []
    assert list(due(answer, told_of(BEGUN), NOW + RENEWED)) == [Action(EventAction.GO_ON, ONE, BEGUN)]


def test_refusals_of_two_proxies_and_new_versions_are_one_problem() -> None:
    """The proxy that reported first and the object's version do not matter.

    Another value is another problem, and severity INFO has no Event.
    """
    answer = notices(KEY, [problem(expected="p2 rejects it"), problem(expected="p1 rejects it")])
    assert [notice.note for notice in answer.values()] == [NOTE]
    moved = replace(problem(), origin=InCluster("east", "8"))
    assert notices(KEY, [moved]) == notices(KEY, [problem()])
    assert len(notices(KEY, [problem("a("), problem("b(")])) == 2
    assert notices(KEY, [replace(problem(), severity=Severity.INFO)]) == {}


def test_service_has_events_for_fields_without_effect() -> None:
    """A cluster obeys these fields and sidecars do not, so the Service's owner must know.

    Other codes have no Event below an error.
    """
    service = ObjectKey(SERVICE, Namespace("shop"), "cart")
    for severity in (Severity.WARNING, Severity.INFO):
        result = replace(problem(code="MW2027"), key=service, severity=severity)
        assert [notice.reason for notice in notices(service, [result]).values()] == ["MW2027"]
        assert notices(service, [replace(result, code="MW2021")]) == {}


def test_warnings_of_a_service_have_no_event() -> None:
    """Most Services of a cluster are outside the mesh, so their warnings have no Event.

    A TrafficTarget has Events for warnings too.
    """
    about = ObjectKey(SERVICE, Namespace("shop"), "till")
    error = replace(problem(), key=about)
    assert len(notices(about, [error, replace(error, field="x", severity=Severity.WARNING)])) == 1
    assert len(notices(KEY, [problem(), replace(problem(), field="x", severity=Severity.WARNING)])) == 2


def test_resolution_has_one_event_and_a_returned_problem_continues_its_event() -> None:
    """Both Events, of the problem and of its resolution, continue when the problem returns or ends again."""
    now = NOW + timedelta(minutes=1)
    text = f"ResourceRejected is resolved: {NOTE}"
    assert acts(due({}, told_of(BEGUN), now)) == [(EventAction.BEGIN, "Mended", text)]
    assert list(due({}, told_of(BEGUN, MENDED), now)) == []
    back = list(due(notices(KEY, [problem()]), told_of(BEGUN, MENDED), now))
    assert back == [Action(EventAction.GO_ON, ONE, BEGUN)]
    there = again(BEGUN, NOW + timedelta(minutes=2))
    assert list(due({}, told_of(there, MENDED), now)) == [Action(EventAction.GO_ON, ONE.mended(), MENDED)]


def test_problem_is_not_resolved_while_its_end_is_unknown() -> None:
    """After a start, the end of a problem is unknown.

    A new fault in the same field does not resolve the old one either.
    """
    assert list(due({}, told_of(BEGUN), NOW, mending=False)) == []
    tried = notices(KEY, [problem("b(")])
    assert [(act, reason) for act, reason, _ in acts(due(tried, told_of(BEGUN), NOW))] == [
        (EventAction.BEGIN, "ResourceRejected")
    ]


def test_event_has_every_field_of_the_api() -> None:
    """The Event has all fields that events.k8s.io requires, and labels for later searches.

    It is read back unchanged.
    """
    result = body(BEGUN, API, METADATA, EventReporter("host-1" * 40, "mesh"))
    assert result == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": BEGUN.name,
            "namespace": "shop",
            "labels": {
                "app.kubernetes.io/managed-by": "meshwright",
                "meshwright.dev/home": "mesh",
                "meshwright.dev/problem": ONE.problem,
            },
            "annotations": {"meshwright.dev/field": "spec.rules[0]"},
        },
        "eventTime": "2026-01-02T03:04:05.000678Z",
        "reportingController": "meshwright.dev/control-plane",
        "reportingInstance": ("host-1" * 40)[:128],
        "action": "Program",
        "reason": "ResourceRejected",
        "regarding": {
            "apiVersion": "access.smi-spec.io/v1alpha3",
            "kind": "TrafficTarget",
            "name": "buyers",
            "namespace": "shop",
            "uid": "u-1",
            "resourceVersion": "9",
        },
        "note": NOTE,
        "type": "Warning",
    }
    assert body(MENDED, API, METADATA, EventReporter("h", "mesh"))["type"] == "Normal"
    assert read(result) == BEGUN
    went_on = again(BEGUN, NOW + RENEWED)
    assert series(went_on) == {"series": {"count": 2, "lastObservedTime": "2026-01-02T03:29:05.000678Z"}}
    assert read(result | series(went_on)) == went_on


def test_same_problem_of_the_same_object_has_the_same_event_name() -> None:
    """A server without memory writes no second Event, because names collide.

    A recreated object and a resolution have their own names.
    """
    assert begun(ONE, "u-1", NOW + RENEWED).name == BEGUN.name
    assert len({BEGUN.name, MENDED.name, begun(ONE, "u-2", NOW).name}) == 3
    long = replace(ONE, about=replace(KEY, name="a" * 199 + "-" + "b" * 50))
    assert begun(long, "u-1", NOW).name.rpartition(".")[0] == "a" * 199


def test_events_of_others_and_malformed_events_are_not_read() -> None:
    """Another controller's Event and an Event with a missing or malformed field are read as None."""
    result = body(BEGUN, API, METADATA, EventReporter("h", "mesh"))
    for wrong in (
        {},
        result | {"reportingController": "kubelet"},
        result | {"metadata": {"name": "x", "namespace": "y"}},
        result | {"eventTime": "yesterday"},
        result | {"regarding": 7},
        result | {"series": {"count": "many", "lastObservedTime": "2026-01-02T03:29:05Z"}},
    ):
        assert read(wrong) is None


def test_note_has_at_most_1024_bytes() -> None:
    """The API counts the limit in bytes, so a long note with umlauts is cut to 1024 bytes."""
    (notice,) = notices(KEY, [problem("ü" * 2000)]).values()
    assert len(notice.note.encode()) <= 1024
    assert notice.note.endswith("...")


def test_excess_problems_are_counted_in_rounded_steps() -> None:
    """The count is rounded down, because an Event cannot be changed.

    A new Event for every further problem would be too many. The Event is about the namespace.
    """
    result = [more(Namespace("shop"), count).note.split()[2] for count in (1, 4, 7, 19, 499, 500, 12345)]
    assert result == ["1", "2", "5", "10", "200", "500", "10000"]
    about = ObjectKey(NAMESPACE, Namespace(""), "shop")
    assert begun(more(Namespace("shop"), 7), "u", NOW).namespace == "shop"
    assert more(Namespace("shop"), 7).about == about
