"""Tones of states: a colour in addition to a word, never instead of a word, for colour-blind readers."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from meshwright.admin.html.markup import Markup, joined, tag, text


class Tone(enum.Enum):
    """Urgency of a state, worst first. BAD: repair. WARNING: look. GOOD: as expected. PLAIN: neutral."""

    BAD = "failed"
    WARNING = "warning"
    GOOD = "ok"
    PLAIN = "info"


_ORDER: Final = tuple(Tone)
_OF: Final = {
    **dict.fromkeys(("synced", "connected", "ack", "allowed", "claimed", "valid", "in force"), Tone.GOOD),
    **dict.fromkeys(
        ("pending", "asked", "disconnected", "depends", "warning", "stale", "held"), Tone.WARNING
    ),
    **dict.fromkeys(
        ("nacked", "nack", "refused", "unreachable", "error", "expired", "failed", "dead"), Tone.BAD
    ),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The line at the top of a page: a tone, and a sentence as summary of the page."""

    tone: Tone
    sentence: str
    word: str = ""
    """The state in one word; empty for the word of the tone."""


def tone_of(state: str) -> Tone:
    """Return the tone for a word, for example GOOD for `connected`; PLAIN for an unknown word."""
    return _OF.get(state, Tone.PLAIN)


def worst(tones: Iterable[Tone]) -> Tone:
    """Return the worst tone; PLAIN without tones."""
    return min(tones, key=_ORDER.index, default=Tone.PLAIN)


def badge(word: str, tone: Tone | None = None) -> Markup:
    """Return a word in a tone, by default the tone of the state with this name."""
    return tag("span", text(word), class_=f"badge {(tone or tone_of(word)).name.lower()}")


def banner(verdict: Verdict) -> Markup:
    """Return a verdict as HTML, for the top of a page."""
    return tag(
        "p",
        badge(verdict.word or verdict.tone.value, verdict.tone),
        text(" "),
        text(verdict.sentence),
        class_=f"verdict {verdict.tone.name.lower()}",
    )


def counted(count: int, word: str, words: str = "") -> str:
    """Return a count with a noun, for example `1 proxy` or `2 proxies`."""
    return f"{count} {word if count == 1 else words or word + 's'}"


def badges(states: Iterable[tuple[str, str]]) -> Markup:
    """Return the states of named things, worst first.

    Equal states become one badge. Otherwise each bad state has a badge, and the good ones are counted.
    """
    result = sorted(states, key=lambda item: _ORDER.index(tone_of(item[1])))
    if len({state for _, state in result}) == 1:
        return badge(result[0][1])
    well = [state for _, state in result if tone_of(state) is Tone.GOOD]
    apart = [
        badge(f"{named} {state}", tone_of(state))
        for named, state in result
        if tone_of(state) is not Tone.GOOD
    ]
    return joined((*apart, *([badge(f"{len(well)} {well[0]}", Tone.GOOD)] if well else [])), " ")
