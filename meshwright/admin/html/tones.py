"""How good something is: the colour of a word, never instead of it."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from meshwright.admin.html.markup import Markup, joined, tag, text


class Tone(enum.Enum):
    """BAD: mend it. WARNING: look. GOOD: as it should be. PLAIN: says nothing of that. The worst is first."""

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
    """The one line above a page: how good what it shows is, and that as a sentence."""

    tone: Tone
    sentence: str
    word: str = ""
    """The state in a word of its own; empty is that of the tone."""


def tone_of(state: str) -> Tone:
    """Return how good a state is, by its word."""
    return _OF.get(state, Tone.PLAIN)


def worst(tones: Iterable[Tone]) -> Tone:
    """Return the worst; PLAIN of none."""
    return min(tones, key=_ORDER.index, default=Tone.PLAIN)


def badge(word: str, tone: Tone | None = None) -> Markup:
    """Return a word in the colour of its tone, by default that of the state it is."""
    return tag("span", text(word), class_=f"badge {(tone or tone_of(word)).name.lower()}")


def banner(verdict: Verdict) -> Markup:
    """Return a verdict as the line above a page."""
    return tag(
        "p",
        badge(verdict.word or verdict.tone.value, verdict.tone),
        text(" "),
        text(verdict.sentence),
        class_=f"verdict {verdict.tone.name.lower()}",
    )


def counted(count: int, word: str, words: str = "") -> str:
    """Return `1 proxy`, `2 proxies`."""
    return f"{count} {word if count == 1 else words or word + 's'}"


def badges(states: Iterable[tuple[str, str]]) -> Markup:
    """Return states of named things, the worst first: one word where they agree, else how many are well."""
    found = sorted(states, key=lambda each: _ORDER.index(tone_of(each[1])))
    if len({state for _, state in found}) == 1:
        return badge(found[0][1])
    well = [state for _, state in found if tone_of(state) is Tone.GOOD]
    apart = [
        badge(f"{named} {state}", tone_of(state)) for named, state in found if tone_of(state) is not Tone.GOOD
    ]
    return joined((*apart, *([badge(f"{len(well)} {well[0]}", Tone.GOOD)] if well else [])), " ")
