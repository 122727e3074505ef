"""Events as an API server lists them: which problems stand."""

from dataclasses import replace
from datetime import timedelta

from meshwright.kubernetes.status.event import RENEWED, EventReporter, again, body
from meshwright.kubernetes.status.events.open_problems import LATE, unmended
from tests.unit.kubernetes.status.test_event import API, BEGUN, MENDED, METADATA, NOW, ONE

WHO = EventReporter("meshwright-0", "mesh")
LATER = NOW + timedelta(minutes=3)
STANDS, OVER = (body(each, API, METADATA, WHO) for each in (BEGUN, MENDED))


def test_a_problem_stands_until_it_is_mended() -> None:
    """And again when its Event goes on after that; the order of the list does not matter."""
    assert unmended([STANDS], NOW) == (ONE,)
    assert unmended([STANDS, OVER], LATER) == unmended([OVER, STANDS], LATER) == ()
    last = again(BEGUN, NOW + timedelta(minutes=2)).last
    assert unmended([OVER, body(replace(BEGUN, last=last), API, METADATA, WHO)], LATER) == (ONE,)


def test_an_event_that_nobody_renews_is_left_out() -> None:
    """Its object is gone, or no control plane reports."""
    assert unmended([STANDS], NOW + RENEWED + LATE) == (ONE,)
    assert unmended([STANDS], NOW + RENEWED + LATE + timedelta(seconds=1)) == ()


def test_events_of_others_are_left_out() -> None:
    """Whatever label they bear."""
    assert unmended([{**STANDS, "reportingController": "kubelet"}, {}], NOW) == ()
