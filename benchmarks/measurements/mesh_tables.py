"""Tables and named values of the results of `benchmarks.mesh`."""

from collections.abc import Iterator, Sequence

from rich.table import Table

from benchmarks.figures.goals import OURS, figures
from benchmarks.figures.results import Values, name
from benchmarks.measurements.change_cost import Cost
from benchmarks.measurements.floor import Floor
from benchmarks.measurements.moving_endpoints import Latency
from benchmarks.measurements.sizes import MeshSizeFigures, Stage
from benchmarks.table import rows, table


def values(
    sizes: Sequence[MeshSizeFigures],
    latency: Latency | None = None,
    bare: Floor | None = None,
    plane: str = OURS,
) -> Values:
    """Return the results of a control plane as values by name."""
    result = Values()
    for size in sizes:
        result |= _of_size(size, (plane, "permissive" if size.permissive else "policy", size.services))
    if latency is not None:
        result |= {
            name(plane, "latency", "p50_ms"): latency.last_ack_ms.p50,
            name(plane, "latency", "p99_ms"): latency.last_ack_ms.p99,
        }
    if bare is not None:
        result |= {
            name("bare", bare.streams, "memory_mib"): bare.memory,
            name("bare", bare.streams, "cpu_s"): bare.cpu,
        }
    return result


def _of_size(size: MeshSizeFigures, mesh: tuple[object, ...]) -> Values:
    result = {
        name(*mesh, "ready_cpu_s"): size.start.cpu,
        name(*mesh, "ready_wall_s"): size.start.wall,
        name(*mesh, "settled_cpu_s"): size.settled,
    }
    total = 0.0
    for stage in size.stages:
        place = (*mesh, stage.connected)
        result[name(*place, "memory_mib")] = stage.memory.resident
        result[name(*place, "idle_share")] = stage.idle
        if not stage.connected:
            result[name(*mesh, "ready_mib")] = stage.memory.resident
        if stage.connecting is not None:
            total += stage.connecting.cpu
            result[name(*place, "serve_cpu_s")] = stage.connecting.cpu
            result[name(*place, "serve_cpu_total_s")] = total
            result[name(*place, "serve_wall_s")] = stage.connecting.configured_ms.max / 1000
        for cost in stage.costs:
            result |= {name(*place, cost.change, key): value for key, value in _of_cost(cost)}
    return result


def _of_cost(cost: Cost) -> Iterator[tuple[str, float]]:
    for key in ("cpu_ms", "cpu_mean_ms", "quiet_ms", "quiet_mean_ms", "proxies", "foreign", "missed", "size"):
        yield key, getattr(cost, key)
    yield "last_ack_p50_ms", cost.last_ack_ms.p50
    yield "last_ack_max_ms", cost.last_ack_ms.max


def tables(
    sizes: Sequence[MeshSizeFigures], latency: Latency | None, bare: Floor | None, peers: Values | None = None
) -> Iterator[Table]:
    """Yield the tables of all results; `peers` has values of other servers for comparison."""
    if sizes:
        yield starts(sizes)
        yield costs(sizes)
    if any(size.churn for size in sizes):
        yield churns(sizes)
    yield table(rows((), figures(values(sizes, latency, bare) | (peers or Values()))), both=False)


def starts(sizes: Sequence[MeshSizeFigures]) -> Table:
    """Return a table with the control plane's start-up time for each mesh, and its memory at each stage."""
    out = _table(
        "start of the server, and sidecars that connect at once",
        "services",
        *(
            "served s",
            "CPU s",
            "CPU s at rest",
            "connected",
            "last configured s",
            "CPU s",
            "responses",
            "MB",
            "refused",
        ),
        *("RSS MiB", "PSS MiB", "RSS after all", "idle CPU %"),
    )
    for size in sizes:
        start = (f"{size.start.wall:.2f}", f"{size.start.cpu:.2f}", f"{size.settled:.2f}")
        for number, stage in enumerate(size.stages):
            last = f"{size.memory_after.resident:.0f}" if stage is size.stages[-1] else ""
            out.add_row(
                _mesh(size) if not number else "",
                *(start if not number else ("", "", "")),
                f"{stage.connected}",
                *_connecting(stage),
                f"{stage.memory.resident:.0f}",
                f"{stage.memory.share:.0f}",
                last,
                f"{stage.idle * 100:.2f}",
            )
        out.add_section()
    return out


def _mesh(size: MeshSizeFigures) -> str:
    return f"{size.services} open" if size.permissive else f"{size.services}"


def _connecting(stage: Stage) -> tuple[str, ...]:
    connecting = stage.connecting
    if connecting is None:
        return ("", "", "", "", "")
    took = f"{connecting.configured_ms.max / 1000:.2f}"
    sizes = (f"{connecting.cpu:.2f}", f"{connecting.responses}", f"{connecting.size / 1e6:.1f}")
    return (took, *sizes, f"{connecting.refused}")


def costs(sizes: Sequence[MeshSizeFigures]) -> Table:
    """Return a table with the cost of each kind of change, by mesh size and connected sidecars."""
    out = _table(
        "changes: CPU until the last ACK, and until the server rests",
        "change",
        *(
            "services",
            "connected",
            "times",
            "CPU ms",
            "mean",
            "to quiet ms",
            "mean",
            "last ACK p50 ms",
            "p99 ms",
        ),
        *("sidecars", "foreign", "missed", "resources", "bytes", "values", "encoded", "loop late ms"),
    )
    result = [
        (mesh_size_figures, cost)
        for mesh_size_figures in sizes
        for stage in mesh_size_figures.stages
        for cost in stage.costs
    ]
    for change in dict.fromkeys(cost.change for _, cost in result):
        for size, cost in result:
            if cost.change == change:
                out.add_row(change, _mesh(size), *_cost(cost))
        out.add_section()
    return out


def _cost(cost: Cost) -> Iterator[str]:
    yield f"{cost.connected}"
    yield f"{cost.repeated}"
    yield f"{cost.cpu_ms:.2f}"
    yield f"{cost.cpu_mean_ms:.2f}"
    yield f"{cost.quiet_ms:.2f}{'+' * bool(cost.restless)}"
    yield f"{cost.quiet_mean_ms:.2f}"
    yield f"{cost.last_ack_ms.p50:.1f}"
    yield f"{cost.last_ack_ms.p99:.1f}"
    yield f"{cost.proxies:.0f}"
    yield f"{cost.foreign}"
    yield f"{cost.missed}"
    yield f"{cost.sent:.0f}"
    yield f"{cost.size:.0f}"
    yield f"{cost.computed:.0f}"
    yield f"{cost.made:.1f}"
    yield f"{cost.late_ms:.1f}"


def churns(sizes: Sequence[MeshSizeFigures]) -> Table:
    """Return a table with the results of constantly moving endpoints, by mesh size."""
    out = _table(
        "churn: a tenth of the endpoints move once a second",
        "services",
        *("offered/s", "seconds", "held/s", "lag ms", "longest gap ms", "event to ACK ms", "CPU %"),
        *("responses", "MB", "loop late ms"),
    )
    for size in sizes:
        if (churn := size.churn) is not None:
            out.add_row(
                f"{churn.services}",
                f"{churn.offered:.0f}",
                f"{churn.seconds:.1f}",
                f"{churn.held:.1f}",
                f"{churn.lag_ms:.0f}",
                f"{churn.gap_ms:.0f}",
                f"{churn.ack_ms:.0f}",
                f"{churn.cpu_share * 100:.0f}",
                f"{churn.responses}",
                f"{churn.size / 1e6:.1f}",
                f"{churn.late_ms:.0f}",
            )
    return out


def _table(title: str, first: str, *headings: str) -> Table:
    out = Table(title=title)
    out.add_column(first, no_wrap=True)
    for heading in headings:
        out.add_column(heading, justify="right")
    return out
