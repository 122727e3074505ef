"""Tests of timelines: the position of each span, and spans longer than the picture."""

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from meshwright.admin.html.timeline import NAMES, WIDTH, Span, timeline
from meshwright.admin.html.tones import Tone

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
LENGTHS = st.timedeltas(-30 * DAY, 4000 * DAY)


def drawn(*spans: Span, until: datetime = NOW + 3 * DAY) -> ElementTree.Element:
    """Return the parsed picture, which shows that its XML is well-formed."""
    return ElementTree.fromstring(timeline(spans, NOW, until, "spans"))  # noqa: S314 - our own


def bars(picture: ElementTree.Element) -> list[tuple[float, float]]:
    """Return the start and the end of each bar."""
    result = [
        (float(element.attrib["x"]), float(element.attrib["width"])) for element in picture.iter("rect")
    ]
    return [(left, left + width) for left, width in result]


def test_span_is_drawn_from_its_start_to_its_end() -> None:
    """A quarter of the picture lies before now, and a span without a start begins at the left edge."""
    room = WIDTH - NAMES
    picture = drawn(
        Span("one", NOW - DAY, NOW + 3 * DAY, Tone.GOOD, ""), Span("two", None, NOW, Tone.BAD, "<b>")
    )
    assert bars(picture) == [(NAMES, WIDTH), (NAMES, NAMES + room / 4)]
    assert "→" not in "".join(picture.itertext())
    assert "<b>" in "".join(picture.itertext())
    assert "in 3 d" in "".join(picture.itertext())


def test_span_beyond_the_picture_has_an_arrow() -> None:
    """A span that ends after the picture fills the width and has an arrow.

    An example is a CA certificate of ten years.
    """
    picture = drawn(Span("ca", None, NOW + 3650 * DAY, Tone.GOOD, ""), until=NOW + DAY)
    assert bars(picture) == [(NAMES, WIDTH)]
    assert "→" in "".join(picture.itertext())


@given(st.lists(st.tuples(st.none() | LENGTHS, LENGTHS), min_size=1, max_size=5), LENGTHS)
def test_bars_stay_within_the_picture(
    spans: list[tuple[timedelta | None, timedelta]], until: timedelta
) -> None:
    """Every bar lies within the picture for all starts, ends and lengths, and long names are cut."""
    made = [
        Span("x" * 60, None if start is None else NOW + start, NOW + end, Tone.GOOD, "")
        for start, end in spans
    ]
    picture = drawn(*made, until=NOW + until)
    assert all(NAMES <= left < right <= WIDTH + 2.1 for left, right in bars(picture))
    assert not re.search("x{40}", "".join(element.text or "" for element in picture.iter("text")))
