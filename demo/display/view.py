"""Rendering of a picture: tables for a terminal, or one line of text for a pipe or a file. Pure.

The parts of the view are below one another, each with a title line. Two tables side by side would read as one
table, in which a sidecar seems to have the certificate of another workload.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from demo.apps import outcomes
from demo.display.picture import Pair, Picture, Sidecar


def render(picture: Picture) -> RenderableType:
    """Return the whole live view of the bookstore, the most important parts first."""
    return Group(*_parts(picture))


@dataclass(frozen=True, slots=True)
class FullScreen:
    """A view with the height of the screen. If lines do not fit, the last line gives their number."""

    view: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines of the view that fit in the height of the terminal."""
        height = options.height or options.max_height
        lines = console.render_lines(self.view, options.update(height=None), pad=False)
        if len(lines) > height:
            # Without this line the terminal would cut off the last tables without a trace.
            text = f"{len(lines) - height + 1} more lines: enlarge the terminal"
            more = Text(text, style="yellow", no_wrap=True)
            lines = [*lines[: height - 1], *console.render_lines(more, options.update(height=1), pad=False)]
        for number, line in enumerate(lines):
            yield from [Segment.line()] if number else []
            yield from line


def _parts(picture: Picture) -> Iterator[RenderableType]:
    yield _head(picture)
    yield _section("Calls in the last few seconds", _pairs(picture))
    yield _section("Books bought by bookbuyer", _split(picture.split))
    if picture.problems:
        yield _section("Problems in the manifests", _problems(picture.problems))
    yield _section("Sidecars", _sidecars(picture))
    yield _section("Service certificates", _certificates(picture))


def _section(title: str, part: RenderableType) -> RenderableType:
    return Group(Text(f"\n{title}", style="bold"), part)


def summary(picture: Picture) -> str:
    """Return the state of the bookstore as one line; the parts are separated by semicolons."""
    parts = [
        f"{pair.source} -> {pair.destination}: {_allowed(pair)}, {pair.rate:.1f} req/s, last {pair.last}"
        for pair in picture.pairs
    ]
    parts += [f"books bought: {_shares(picture.split)}"] if picture.split else []
    synced = sum(sidecar.is_synced for sidecar in picture.sidecars)
    parts.append(f"{synced} of {len(picture.sidecars)} sidecars in sync")
    if picture.problems:
        noun = "problem" if len(picture.problems) == 1 else "problems"
        parts.append(f"{len(picture.problems)} {noun}, for example: {picture.problems[0]}")
    if picture.silent:
        parts.append(_unanswered(picture))
    return "; ".join(parts)


def _unanswered(picture: Picture) -> str:
    return f"The control plane does not answer: {picture.silent}"


def _head(picture: Picture) -> RenderableType:
    head = Text.assemble(
        ("Meshwright: the bookstore", "bold"),
        f"   interception: {picture.mode}   {picture.now:%H:%M:%S} UTC\n",
        "Edit the manifests in ",
        (picture.mesh, "cyan"),
        " and watch the effect; ",
        (picture.variants, "cyan"),
        " has variants to copy. Press Ctrl-C to stop the demo.",
        overflow="fold",
    )
    if picture.silent:
        head.append(f"\n{_unanswered(picture)}", style="bold red")
    return head


def _allowed(pair: Pair) -> str:
    return "unknown" if pair.allowed is None else "allowed" if pair.allowed else "denied"


def _outcome(outcome: str, shown: str) -> Text:
    if outcomes.is_allowed(outcome):
        return Text(shown, style="green")
    return Text(shown, style="red" if outcomes.is_denied(outcome) else "yellow")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _pairs(picture: Picture) -> RenderableType:
    table = _table("client", "service", "policy", "req/s", "observed")
    # On a narrow terminal this column is shortened first, because only this one may wrap; `overflow` cuts the
    # text.
    table.add_column("allowed by")
    for pair in picture.pairs:
        seen = [_outcome(name, f"{name} ({count})") for name, count in pair.outcomes]
        table.add_row(
            pair.source,
            pair.destination,
            Text(_allowed(pair), style={True: "green", False: "red", None: "yellow"}[pair.allowed]),
            f"{pair.rate:.1f}",
            Text(", ").join(seen) if seen else Text("-"),
            Text(", ".join(pair.by), no_wrap=True, overflow="ellipsis"),
        )
    return table


def _split(sold: tuple[tuple[str, int], ...]) -> RenderableType:
    return Text(_shares(sold), overflow="fold")


def _shares(sold: tuple[tuple[str, int], ...]) -> str:
    total = sum(count for _, count in sold)
    if not total:
        return "none"
    return ", ".join(f"{name} {100 * count / total:.0f} % ({count})" for name, count in sold)


def _sidecars(picture: Picture) -> RenderableType:
    table = _table("workload", "state", "configuration")
    for sidecar in picture.sidecars:
        style = "green" if sidecar.state == "connected" else "yellow"
        table.add_row(sidecar.name, Text(sidecar.state, style=style), _sync(sidecar))
    return table


def _certificates(picture: Picture) -> RenderableType:
    table = _table("service account", "valid for")
    for identity, end in picture.certificates:
        table.add_row(identity, _left(end, picture.now))
    return table


def _sync(sidecar: Sidecar) -> Text:
    if sidecar.is_synced:
        return Text("in sync", style="green")
    behind = [f"{name} {state}" for name, state in sidecar.sync if state not in ("synced", "asked")]
    return Text(", ".join(behind) or "-", style="yellow")


def _left(end: datetime, now: datetime) -> str:
    seconds = int((end - now).total_seconds())
    if seconds <= 0:
        return "expired"
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _problems(problems: tuple[str, ...]) -> RenderableType:
    shown = list(problems[:3])
    if (more := len(problems) - len(shown)) > 0:
        shown.append(f"and {more} more")
    return Text("\n".join(shown), style="yellow", overflow="fold")
