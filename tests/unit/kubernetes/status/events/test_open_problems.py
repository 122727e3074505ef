"""Tests of the list of open problems, from Events as an API server lists them."""

from dataclasses import replace
from datetime import timedelta

from meshwright.kubernetes.status.event import RENEWED, EventReporter, again, body
from meshwright.kubernetes.status.events.open_problems import LATE, unmended
from tests.unit.kubernetes.status.test_event import API, BEGUN, MENDED, METADATA, NOW, ONE

WHO = EventReporter("meshwright-0", "mesh")
LATER = NOW + timedelta(minutes=3)
STANDS, OVER = (body(written_event, API, METADATA, WHO) for written_event in (BEGUN, MENDED))


def test_problem_is_open_until_its_resolution_event() -> None:
    """The problem is open again if its Event continues after the resolution.

    The order of the list does not matter.
    """
    assert unmended([STANDS], NOW) == (ONE,)
    assert unmended([STANDS, OVER], LATER) == unmended([OVER, STANDS], LATER) == ()
    last = again(BEGUN, NOW + timedelta(minutes=2)).last
    assert unmended([OVER, body(replace(BEGUN, last=last), API, METADATA, WHO)], LATER) == (ONE,)


def test_event_without_renewal_is_omitted() -> None:
    """An Event that is not renewed in time has lost its object or its control plane."""
    assert unmended([STANDS], NOW + RENEWED + LATE) == (ONE,)
    assert unmended([STANDS], NOW + RENEWED + LATE + timedelta(seconds=1)) == ()


def test_events_of_other_controllers_are_omitted() -> None:
    """The reporting controller decides, because any program can set our labels."""
    assert unmended([{**STANDS, "reportingController": "kubelet"}, {}], NOW) == ()
