"""Picture of a graph in SVG without scripts; nodes are links, and tables beside it have the same content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from meshwright.admin.html.markup import Markup, joined, tag, text
from meshwright.admin.html.tones import Tone
from meshwright.admin.topology.layout import layout

WIDTH: Final = 168
HEIGHT: Final = 46
AHEAD: Final = 264
"""Pixels from one layer to the next, with room for the label of an edge."""
BELOW: Final = 72
MARGIN: Final = 14
LETTERS: Final = 21
"""Maximum letters of a name in a node; the title of the node has the whole name."""
_LOCK: Final = "M1 5h8v6h-8z M2.8 5v-1.8a2.2 2.2 0 0 1 4.4 0v1.8"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the drawn graph: a box with a name, a second line, a link and a tone."""

    name: str
    below: str
    href: str
    tone: Tone
    title: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge of the drawn graph: dashed without observed traffic, with a lock for observed mTLS."""

    says: str
    tone: Tone
    seen: bool
    locked: bool
    title: str


_Point = tuple[float, float]


def picture(
    nodes: Mapping[str, Node], arrows: Mapping[tuple[str, str], Arrow], label: str, about: str = ""
) -> Markup:
    """Return the graph of nodes and arrows as SVG; keys are node IDs, and `about` is the highlighted one."""
    result = layout(list(nodes), set(arrows))
    tallest = max(map(len, result.layers), default=0)
    width = 2 * MARGIN + max(0, len(result.layers) - 1) * AHEAD + WIDTH
    height = 2 * MARGIN + max(1, tallest) * BELOW
    at = {
        place: (MARGIN + layer * AHEAD, height / 2 + (number - (len(row) - 1) / 2) * BELOW)
        for layer, row in enumerate(result.layers)
        for number, place in enumerate(row)
    }
    lines = [_arrow(arrows[edge], [at[item] for item in way]) for edge, way in sorted(result.ways.items())]
    boxes = [_box(node, at[key], is_subject=key == about) for key, node in nodes.items()]
    # Order matters in SVG: labels come last, above all lines and boxes.
    drawn = tag(
        "svg",
        _heads(),
        *(line for line, _ in lines),
        *boxes,
        *(words for _, words in lines),
        viewBox=f"0 0 {width} {height:g}",
        width=str(width),
        height=f"{height:g}",
        role="group",
        aria_label=label,
    )
    return tag("div", drawn, class_="picture", tabindex="0", role="region", aria_label=label)


def _heads() -> Markup:
    """Return the SVG definitions of the arrow heads, one for each tone."""
    return tag(
        "defs",
        *(
            tag(
                "marker",
                tag("path", d="M0 0L8 4L0 8z", class_=f"head {tone.name.lower()}"),
                id=f"head-{tone.name.lower()}",
                viewBox="0 0 8 8",
                refX="8",
                refY="4",
                markerWidth="8",
                markerHeight="8",
                markerUnits="userSpaceOnUse",
                orient="auto",
            )
            for tone in Tone
        ),
    )


def _box(node: Node, at: _Point, *, is_subject: bool) -> Markup:
    left, middle = at
    inner = (
        tag("title", text(node.title)),
        tag(
            "rect",
            x=f"{left:g}",
            y=f"{middle - HEIGHT / 2:g}",
            width=str(WIDTH),
            height=str(HEIGHT),
            rx="8",
        ),
        tag("text", text(_short(node.name)), x=f"{left + 12:g}", y=f"{middle - 4:g}", class_="name"),
        tag("text", text(_short(node.below)), x=f"{left + 12:g}", y=f"{middle + 14:g}", class_="below"),
    )
    subject = " subject" if is_subject else ""
    return tag("a", *inner, href=node.href, class_=f"node {node.tone.name.lower()}{subject}")


def _short(words: str) -> str:
    return words if len(words) <= LETTERS else f"{words[: LETTERS - 1]}…"


def _arrow(arrow: Arrow, way: Sequence[_Point]) -> tuple[Markup, Markup]:
    """Return the SVG line of an arrow, and the label of the arrow."""
    forward = way[0][0] < way[-1][0]
    points = [_passing(item, number, len(way), forward=forward) for number, item in enumerate(way)]
    steps = [f"M{points[0][0]:g} {points[0][1]:g}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        bend = (to_x - x) / 2
        steps.append(f"C{x + bend:g} {y:g} {to_x - bend:g} {to_y:g} {to_x:g} {to_y:g}")
    tone = arrow.tone.name.lower()
    seen = "seen" if arrow.seen else "unseen"
    line = tag(
        "path",
        tag("title", text(arrow.title)),
        d=" ".join(steps),
        class_=f"edge {tone} {seen}",
        marker_end=f"url(#head-{tone})",
    )
    return line, _words(arrow, points)


def _passing(at: _Point, number: int, count: int, *, forward: bool) -> _Point:
    """Return the point where a line passes a place: the side of a node, or the middle of a gap."""
    x, y = at
    if 0 < number < count - 1:
        return x + WIDTH / 2, y
    # Backward lines are a little lower, so that they do not overlap with forward lines.
    return (x + WIDTH if (number == 0) is forward else x), y if forward else y + HEIGHT / 4


def _words(arrow: Arrow, points: Sequence[_Point]) -> Markup:
    if not arrow.says and not arrow.locked:
        return joined(())
    (x, y), (to_x, to_y) = points[0], points[1]
    middle_x, middle_y = (x + to_x) / 2, (y + to_y) / 2
    markups = []
    shift = 0.0
    if arrow.locked:
        # Half the width of the label: a letter of the 12 px font is about 6.8 pixels wide.
        half = 3.4 * len(arrow.says)
        lock = tag(
            "path", d=_LOCK, transform=f"translate({middle_x - half - 9:g} {middle_y - 16:g})", class_="lock"
        )
        markups.append(tag("g", tag("title", text("mutual TLS was observed")), lock))
        shift = 5.0
    words = tag(
        "text", text(arrow.says), x=f"{middle_x + shift:g}", y=f"{middle_y - 6:g}", text_anchor="middle"
    )
    # Hidden from screen readers, because the title of the line has the same text.
    return tag("g", *markups, words, class_=f"says {arrow.tone.name.lower()}", aria_hidden="true")
