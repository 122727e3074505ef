"""The live view: a picture as a terminal's tables, or as one line where there is no terminal. Pure."""

from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from demo.apps import outcomes
from demo.display.picture import Pair, Picture, Sidecar


def render(picture: Picture) -> RenderableType:
    """Return the whole view."""
    shown = (_head(picture), _pairs(picture), _split(picture.split), *_problems(picture), _sidecars(picture))
    return Group(*shown)


def summary(picture: Picture) -> str:
    """Return the picture as one line."""
    calls = "  ".join(
        f"{pair.source}>{pair.destination} {_allowed(pair)} {pair.rate:.1f}/s {pair.last}"
        for pair in picture.pairs
    )
    sold = ":".join(str(count) for _, count in picture.split)
    synced = sum(sidecar.is_synced for sidecar in picture.sidecars)
    line = f"{calls}  split {sold}  sidecars {synced}/{len(picture.sidecars)} in sync"
    if picture.problems:
        line += f"  {len(picture.problems)} problems, the first: {picture.problems[0]}"
    return f"{line}  {picture.silent}".rstrip()


def _head(picture: Picture) -> RenderableType:
    head = Text.assemble(
        ("Meshwright: the bookstore", "bold"),
        f"  interception: {picture.mode}  {picture.now:%H:%M:%S}\n",
        "edit the manifests in ",
        (picture.mesh, "cyan"),
        " and watch; variants to copy from: ",
        (picture.variants, "cyan"),
        "\nCtrl-C ends everything\n",
        overflow="fold",
    )
    if picture.silent:
        head.append(f"the control plane does not answer: {picture.silent}\n", style="bold red")
    return head


def _allowed(pair: Pair) -> str:
    return "?" if pair.allowed is None else "allowed" if pair.allowed else "denied"


def _outcome(outcome: str, shown: str) -> Text:
    if outcomes.is_allowed(outcome):
        return Text(shown, style="green")
    return Text(shown, style="red" if outcomes.is_denied(outcome) else "yellow")


def _pairs(picture: Picture) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("client", "server", "policy", "req/s", "observed"):
        table.add_column(column, no_wrap=True)
    # On a narrow terminal this column gives way first, and is cut, not folded.
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
    total = sum(count for _, count in sold)
    if not total:
        return Text("\nthe buyer buys nothing\n")
    shares = "   ".join(f"{name} {100 * count / total:.0f} % ({count})" for name, count in sold)
    return Text(f"\nthe buyer buys from   {shares}\n")


def _sidecars(picture: Picture) -> RenderableType:
    sidecars = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("sidecar", "state", "configuration"):
        sidecars.add_column(column, no_wrap=True)
    for sidecar in picture.sidecars:
        style = "green" if sidecar.state == "connected" else "yellow"
        sidecars.add_row(sidecar.name, Text(sidecar.state, style=style), _sync(sidecar))
    certificates = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("service certificate", "valid for"):
        certificates.add_column(column, no_wrap=True)
    for identity, end in picture.certificates:
        certificates.add_row(identity, _left(end, picture.now))
    beside = Table.grid(padding=(0, 2))
    beside.add_row(sidecars, certificates)
    return beside


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


def _problems(picture: Picture) -> list[RenderableType]:
    if not picture.problems:
        return []
    shown = "\n".join(picture.problems[:3])
    more = len(picture.problems) - 3
    text = f"problems in the manifests:\n{shown}" + (f"\nand {more} more\n" if more > 0 else "\n")
    return [Text(text, style="yellow", overflow="fold")]
