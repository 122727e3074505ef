"""Events as an API server lists them: which problems stand."""

from dataclasses import replace
from datetime import timedelta

from reporting.events import Who, again, body
from reporting.unmended import unmended
from tests.unit.reporting.test_events import API, BEGUN, MENDED, METADATA, NOW, ONE

WHO = Who("meshwright-0", "mesh")
STANDS, OVER = (body(each, API, METADATA, WHO) for each in (BEGUN, MENDED))


def test_a_problem_stands_until_it_is_mended() -> None:
    """And again when its Event goes on after that; the order of the list does not matter."""
    assert unmended([STANDS]) == (ONE,)
    assert unmended([STANDS, OVER]) == unmended([OVER, STANDS]) == ()
    last = again(BEGUN, NOW + timedelta(minutes=2)).last
    assert unmended([OVER, body(replace(BEGUN, last=last), API, METADATA, WHO)]) == (ONE,)


def test_events_of_others_are_left_out() -> None:
    """Whatever label they bear."""
    assert unmended([{**STANDS, "reportingController": "kubelet"}, {}]) == ()
