"""The tables of `benchmarks.mesh`, and how its figures stand to those that are wanted."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from rich.table import Table

from benchmarks.measuring import Cost
from benchmarks.moving import Latency
from benchmarks.sizes import Sized

FULL_SIZE: Final = 1000
"""Services of the mesh that absolute figures are asked of."""


def tables(sizes: Sequence[Sized], latency: Latency | None) -> Iterator[Table]:
    """Yield all tables."""
    yield starts(sizes)
    yield costs(sizes)
    if any(each.churn for each in sizes):
        yield churns(sizes)
    yield verdicts(sizes, latency)


def starts(sizes: Sequence[Sized]) -> Table:
    """Lay out how each size began, and what it holds."""
    out = _table(
        "from nothing, and all sidecars connect at once",
        "services",
        *("served s", "CPU s", "sidecars", "last configured s", "CPU s", "responses", "MB"),
        *("RSS MiB", "PSS MiB", "RSS after all", "idle CPU %"),
    )
    for each in sizes:
        connecting = each.connecting
        out.add_row(
            f"{each.services}",
            f"{each.start.wall:.2f}",
            f"{each.start.cpu:.2f}",
            f"{connecting.proxies}",
            f"{connecting.configured_ms.max / 1000:.2f}",
            f"{connecting.cpu:.2f}",
            f"{connecting.responses}",
            f"{connecting.size / 1e6:.1f}",
            f"{each.memory.resident:.0f}",
            f"{each.memory.share:.0f}",
            f"{each.memory_after.resident:.0f}",
            f"{each.idle * 100:.2f}",
        )
    return out


def costs(sizes: Sequence[Sized]) -> Table:
    """Lay out each kind of change as the mesh grows."""
    out = _table(
        "changes: medians; CPU to the last ACK, and with all that comes after it",
        "change",
        *("services", "CPU ms", "growth", "whole ms", "growth", "last ACK p50 ms", "p99 ms"),
        *("sidecars", "foreign", "missed", "resources", "bytes", "values", "encoded", "loop late ms"),
    )
    for row in range(len(sizes[0].costs)):
        before: Cost | None = None
        for size in sizes:
            each = size.costs[row]
            out.add_row(
                each.change,
                f"{each.services}",
                f"{each.cpu_ms:.2f}",
                _growth(each.cpu_ms, before.cpu_ms if before else 0.0),
                f"{each.whole_ms:.2f}",
                _growth(each.whole_ms, before.whole_ms if before else 0.0),
                f"{each.last_ack_ms.p50:.1f}",
                f"{each.last_ack_ms.p99:.1f}",
                f"{each.proxies:.0f}",
                f"{each.foreign}",
                f"{each.missed}",
                f"{each.sent:.0f}",
                f"{each.size:.0f}",
                f"{each.computed:.0f}",
                f"{each.made:.1f}",
                f"{each.late_ms:.1f}",
            )
            before = each
        out.add_section()
    return out


def churns(sizes: Sequence[Sized]) -> Table:
    """Lay out how each size stood up to endpoints that move all the time."""
    out = _table(
        "a tenth of the endpoints moves, each once a second",
        "services",
        *("offered/s", "seconds", "held/s", "lag ms", "longest gap ms", "event to ACK ms", "CPU %"),
        *("responses", "MB", "loop late ms"),
    )
    for each in sizes:
        if (found := each.churn) is not None:
            out.add_row(
                f"{found.services}",
                f"{found.offered:.0f}",
                f"{found.seconds:.1f}",
                f"{found.held:.1f}",
                f"{found.lag_ms:.0f}",
                f"{found.gap_ms:.0f}",
                f"{found.ack_ms:.0f}",
                f"{found.cpu_share * 100:.0f}",
                f"{found.responses}",
                f"{found.size / 1e6:.1f}",
                f"{found.late_ms:.0f}",
            )
    return out


def verdicts(sizes: Sequence[Sized], latency: Latency | None) -> Table:
    """Set what was measured beside what is wanted."""
    out = Table(title="wanted and measured")
    for heading in ("figure", "wanted", "measured", "reached"):
        out.add_column(heading)
    for figure, wanted, measured, reached in figures(sizes, latency):
        out.add_row(figure, wanted, measured, "yes" if reached else "no")
    return out


Figure = tuple[str, str, str, bool]


def figures(sizes: Sequence[Sized], latency: Latency | None) -> Iterator[Figure]:
    """Yield each figure: its name, what is wanted, what was measured, whether it is reached."""
    for size in sizes:
        yield _one_endpoint(size)
    for before, after in itertools.pairwise(sizes):
        if after.services == 2 * before.services:
            growth = after.costs[0].cpu_ms / before.costs[0].cpu_ms
            yield f"P6, {before.services} to {after.services}", "<= 1.1", f"{growth:.2f}", growth <= 1.1
    for size in sizes:
        if size.services == FULL_SIZE:
            yield from _whole(size)
    if latency is not None:
        p99 = latency.last_ack_ms.p99
        measured = f"p50 {latency.last_ack_ms.p50:.0f} ms, p99 {p99:.0f} ms, {latency.changes} changes"
        yield f"P12, {latency.proxies} sidecars", "p99 <= 250 ms", measured, p99 <= 250


def _one_endpoint(size: Sized) -> Figure:
    found = size.costs[0]
    limit = 5 + 0.25 * found.proxies
    alone = not found.foreign and not found.missed
    others = "nobody else" if alone else f"{found.foreign} others, {found.missed} missed"
    return (
        f"P5, {size.services} services",
        f"<= {limit:.1f} ms CPU",
        f"{found.cpu_ms:.1f} ms, {found.proxies:.0f} sidecars, {others}",
        found.cpu_ms <= limit and alone,
    )


def _whole(size: Sized) -> Iterator[Figure]:
    yield "P7, from nothing", "<= 10 s", f"{size.start.cpu:.1f} s CPU", size.start.cpu <= 10
    setting = size.costs[-1]
    took = setting.last_ack_ms.max / 1000
    yield "P8, a mesh-wide setting", "<= 5 s", f"{took:.1f} s, {setting.proxies:.0f} sidecars", took <= 5
    held = size.memory.resident
    yield "P9, memory", "<= 400 MiB", f"{held:.0f} MiB, {size.memory.share:.0f} of its own", held <= 400


def _growth(value: float, before: float) -> str:
    return f"{value / before:.2f}" if before else ""


def _table(title: str, first: str, *headings: str) -> Table:
    out = Table(title=title)
    out.add_column(first, no_wrap=True)
    for heading in headings:
        out.add_column(heading, justify="right")
    return out
