"""Events: one for each problem, renewed rarely, and one when it is mended; whole values."""

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
    """Make a problem of the target."""
    return Problem(
        code=code,
        severity=Severity.ERROR,
        origin=InCluster("east", "7"),
        key=KEY,
        field="spec.rules[0]",
        value=value,
        expected=expected,
    )


def told_of(*each: WrittenEvent) -> dict[tuple[str, bool], WrittenEvent]:
    """Return what was told."""
    return {told.known_as: told for told in each}


def acts(actions: Iterable[Action]) -> list[tuple[EventAction, str, str]]:
    """Return what is to be done."""
    return [(each.act, each.notice.reason, each.notice.note) for each in actions]


NOTE = "spec.rules[0] is a(: p1 rejects it"
ONE = next(iter(notices(KEY, [problem()]).values()))
BEGUN = begun(ONE, "u-1", NOW)
MENDED = begun(ONE.mended(), "u-1", NOW + timedelta(minutes=1))


def test_a_problem_begins_an_event_and_is_left_alone_then() -> None:
    """As long as the API server does not forget it."""
    said = notices(KEY, [problem()])
    assert acts(due(said, {}, NOW)) == [(EventAction.BEGIN, "ResourceRejected", NOTE)]
    assert acts(due(said, told_of(BEGUN), NOW + RENEWED - timedelta(seconds=1))) == []
    assert list(due(said, told_of(BEGUN), NOW + RENEWED)) == [Action(EventAction.GO_ON, ONE, BEGUN)]


def test_whom_a_refusal_came_from_first_is_no_other_problem() -> None:
    """Nor is an object's new version; another value is, and what is merely worth knowing is not told."""
    said = notices(KEY, [problem(expected="p2 rejects it"), problem(expected="p1 rejects it")])
    assert [each.note for each in said.values()] == [NOTE]
    moved = replace(problem(), origin=InCluster("east", "8"))
    assert notices(KEY, [moved]) == notices(KEY, [problem()])
    assert len(notices(KEY, [problem("a("), problem("b(")])) == 2
    assert notices(KEY, [replace(problem(), severity=Severity.INFO)]) == {}


def test_the_owner_of_a_service_is_told_of_fields_without_effect() -> None:
    """A cluster obeys them and sidecars do not: the owner relies on them, be it only for nearness."""
    service = ObjectKey(SERVICE, Namespace("shop"), "cart")
    for severity in (Severity.WARNING, Severity.INFO):
        found = replace(problem(code="MW2027"), key=service, severity=severity)
        assert [each.reason for each in notices(service, [found]).values()] == ["MW2027"]
        assert notices(service, [replace(found, code="MW2021")]) == {}


def test_who_may_not_know_of_a_mesh_is_told_what_is_not_in_force() -> None:
    """Most Services of a cluster are outside of it, and that is nobody's fault."""
    about = ObjectKey(SERVICE, Namespace("shop"), "till")
    error = replace(problem(), key=about)
    assert len(notices(about, [error, replace(error, field="x", severity=Severity.WARNING)])) == 1
    assert len(notices(KEY, [problem(), replace(problem(), field="x", severity=Severity.WARNING)])) == 2


def test_what_is_mended_is_said_once() -> None:
    """And a problem that comes back goes on with the Event that it had, in both directions."""
    now = NOW + timedelta(minutes=1)
    text = f"ResourceRejected is resolved: {NOTE}"
    assert acts(due({}, told_of(BEGUN), now)) == [(EventAction.BEGIN, "Mended", text)]
    assert list(due({}, told_of(BEGUN, MENDED), now)) == []
    back = list(due(notices(KEY, [problem()]), told_of(BEGUN, MENDED), now))
    assert back == [Action(EventAction.GO_ON, ONE, BEGUN)]
    there = again(BEGUN, NOW + timedelta(minutes=2))
    assert list(due({}, told_of(there, MENDED), now)) == [Action(EventAction.GO_ON, ONE.mended(), MENDED)]


def test_nothing_is_mended_while_that_is_not_known() -> None:
    """After a start; and not while the next try at the same place is wrong as well."""
    assert list(due({}, told_of(BEGUN), NOW, mending=False)) == []
    tried = notices(KEY, [problem("b(")])
    assert [(act, reason) for act, reason, _ in acts(due(tried, told_of(BEGUN), NOW))] == [
        (EventAction.BEGIN, "ResourceRejected")
    ]


def test_an_event_is_written_as_the_api_takes_it() -> None:
    """Every field that events.k8s.io asks for, and the labels by which it is found again."""
    found = body(BEGUN, API, METADATA, EventReporter("host-1" * 40, "mesh"))
    assert found == {
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
    assert read(found) == BEGUN
    went_on = again(BEGUN, NOW + RENEWED)
    assert series(went_on) == {"series": {"count": 2, "lastObservedTime": "2026-01-02T03:29:05.000678Z"}}
    assert read(found | series(went_on)) == went_on


def test_the_same_problem_of_the_same_object_has_one_name() -> None:
    """Who knows nothing of what was told writes no second Event; an object made anew has its own."""
    assert begun(ONE, "u-1", NOW + RENEWED).name == BEGUN.name
    assert len({BEGUN.name, MENDED.name, begun(ONE, "u-2", NOW).name}) == 3
    long = replace(ONE, about=replace(KEY, name="a" * 199 + "-" + "b" * 50))
    assert begun(long, "u-1", NOW).name.rpartition(".")[0] == "a" * 199


def test_events_of_others_are_not_ours() -> None:
    """Whatever they look like."""
    found = body(BEGUN, API, METADATA, EventReporter("h", "mesh"))
    for wrong in (
        {},
        found | {"reportingController": "kubelet"},
        found | {"metadata": {"name": "x", "namespace": "y"}},
        found | {"eventTime": "yesterday"},
        found | {"regarding": 7},
        found | {"series": {"count": "many", "lastObservedTime": "2026-01-02T03:29:05Z"}},
    ):
        assert read(wrong) is None


def test_a_note_is_never_too_long() -> None:
    """In bytes, as the API counts them."""
    (said,) = notices(KEY, [problem("ü" * 2000)]).values()
    assert len(said.note.encode()) <= 1024
    assert said.note.endswith("...")


def test_of_too_many_problems_it_is_said_how_many_they_are() -> None:
    """Roughly: an Event cannot be changed, and is not to be made anew for each of them."""
    found = [more(Namespace("shop"), count).note.split()[2] for count in (1, 4, 7, 19, 499, 500, 12345)]
    assert found == ["1", "2", "5", "10", "200", "500", "10000"]
    about = ObjectKey(NAMESPACE, Namespace(""), "shop")
    assert begun(more(Namespace("shop"), 7), "u", NOW).namespace == "shop"
    assert more(Namespace("shop"), 7).about == about
