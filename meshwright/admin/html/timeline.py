"""Timeline of certificate lifetimes in SVG without scripts; tables on the page have the same content."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from meshwright.admin.html.markup import Markup, tag, text
from meshwright.admin.html.tones import Tone

WIDTH: Final = 900
NAMES: Final = 250
ROW: Final = 26
LETTERS: Final = 34
BEFORE: Final = 0.25
"""Share of the picture before the present."""
SHORTEST: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Span:
    """A bar of the timeline: the lifetime of a certificate. None as `start` means always until `end`."""

    name: str
    start: datetime | None
    end: datetime
    tone: Tone
    title: str


def timeline(spans: Sequence[Span], now: datetime, until: datetime, label: str) -> Markup:
    """Return spans around `now`; a span with an end after `until` has an arrow at the edge."""
    # Never 0, because the scale is divided by this length.
    ahead = max(until - now, SHORTEST)
    first = now - ahead * BEFORE / (1 - BEFORE)
    height = ROW * (len(spans) + 1)

    def at(moment: datetime) -> float:
        part = (moment - first) / (now + ahead - first)
        return NAMES + (WIDTH - NAMES) * min(1.0, max(0.0, part))

    here = at(now)
    line = tag("path", d=f"M{here:.1f} 0V{height - ROW}", class_="now")
    words = tag("text", text("now"), x=f"{here:.1f}", y=str(height - 8), text_anchor="middle", class_="below")
    last = tag("text", text(_away(ahead)), x=str(WIDTH), y=str(height - 8), text_anchor="end", class_="below")
    rows = [_row(span, number, at, now + ahead) for number, span in enumerate(spans)]
    drawn = tag(
        "svg",
        *rows,
        line,
        words,
        last,
        viewBox=f"0 0 {WIDTH} {height}",
        width=str(WIDTH),
        height=str(height),
        role="img",
        aria_label=label,
    )
    return tag("div", drawn, class_="picture timeline", tabindex="0", role="region", aria_label=label)


def _row(span: Span, number: int, at: Callable[[datetime], float], edge: datetime) -> Markup:
    top = number * ROW
    left = NAMES if span.start is None else at(span.start)
    # At least 2 pixels, so that an expired span is visible.
    right = max(at(span.end), left + 2)
    shown = span.name if len(span.name) <= LETTERS else f"{span.name[: LETTERS - 1]}…"
    inner = [
        tag("title", text(span.title)),
        tag("text", text(shown), x="8", y=str(top + 18), class_="name"),
        tag(
            "rect", x=f"{left:.1f}", y=str(top + 6), width=f"{right - left:.1f}", height=str(ROW - 10), rx="3"
        ),
    ]
    if span.end > edge:
        inner.append(
            tag("text", text("→"), x=str(WIDTH - 6), y=str(top + 18), text_anchor="end", class_="on")
        )
    return tag("g", *inner, class_=f"span {span.tone.name.lower()}")


def _away(length: timedelta) -> str:
    days, seconds = length.days, length.seconds
    return (
        f"in {days} d"
        if days
        else f"in {seconds // 3600} h"
        if seconds >= 3600
        else f"in {seconds // 60} min"
    )
