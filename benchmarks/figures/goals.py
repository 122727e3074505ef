"""Goals P1 to P15, and the comparison of measured values with them.

A goal uses values by name (see `benchmarks.figures.results`), so any program may have measured them at any
time. A goal without all its values has no row.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.figures.results import Values, name

OURS: Final = "ours"
BESIDE: Final = "ours-beside-istiod"
"""Our server in the run of the mesh peer; preferred for comparisons, because both are measured in one run."""
DEFAULT: Final = "istiod-default"
NARROW: Final = "istiod-narrow"
BARE: Final = "bare grpc.aio"
ENDPOINT: Final = "one endpoint moves"
SETTING: Final = "a mesh-wide setting changes"
APPEARS: Final = "a service appears"
ALONE: Final = 12
"""Number of connected sidecars: ten affected by the move of an endpoint, and the two of its service."""
FULL: Final = 1000
"""Number of services for goals with absolute values."""
HUGE: Final = 10_000
GROWING: Final = (250, 500, 1000, 4000, 10_000)


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: number of the goal (for example P5), subject, limit, measured value, peer's value, verdict."""

    number: str
    what: str
    wanted: str
    measured: str
    peer: str
    reached: bool


def figures(values: Values) -> Iterator[Figure]:
    """Yield the rows of all performance goals with measured values, in the order of the goals."""
    for group in (fan_outs, endpoint, growth, wholes, storms, latency, permissive, huge):
        yield from group(values)


def fan_outs(values: Values) -> Iterator[Figure]:
    """Yield the rows of goals P1 to P4: CPU time of fan-out and connecting, as a ratio to a peer's."""
    wanted = (
        ("P1", "P1 delta", "push_us", BARE, 1.25),
        ("P1", "P1 sotw", "push_us", BARE, 1.25),
        ("P2", "P2 delta", "push_us", "go-control-plane", 0.15),
        ("P3", "P3 sotw", "push_us", "go-control-plane", 0.03),
        ("P4", "P2 delta", "connect_s", "go-control-plane", 0.15),
        ("P4", "P3 sotw", "connect_s", "go-control-plane", 0.15),
    )
    for number, workload, value, peer, limit in wanted:
        mine, its = (values.get(name("fanout", workload, who, value)) for who in ("meshwright", peer))
        if mine is not None and its:
            unit = "µs per push" if value == "push_us" else "s for connecting"
            what = f"{workload.split()[1]}, {'fan-out' if value == 'push_us' else 'first configuration'}"
            yield _ratio(number, what, mine, its, limit, unit, peer)


def endpoint(values: Values) -> Iterator[Figure]:
    """Yield the rows of goal P5: an endpoint moves while all or only the affected sidecars are connected."""
    for connected in (2 * FULL, ALONE):
        words = ("policy", FULL, connected, ENDPOINT)
        what = f"{FULL} services, {connected} connected"
        result = [values.get(name(OURS, *words, item)) for item in _COST]
        if None not in result:
            yield from _moved(what, *(number or 0.0 for number in result))
        mine, its = _with_peer(values, NARROW, *words, "cpu_ms")
        if mine is not None and its:
            yield _ratio("P5", what, mine, its, 0.3 if connected > ALONE else 1.5, "ms", NARROW)


def _moved(
    subject: str, cpu: float, quiet: float, mean: float, proxies: float, foreign: float, missed: float
) -> Iterator[Figure]:
    # A change has a fixed cost, and a cost for each affected proxy; both in milliseconds.
    limit = 3 + 0.2 * proxies
    alone = not foreign and not missed
    others = "no others" if alone else f"{foreign:.0f} others, {missed:.0f} missed"
    measured = f"{cpu:.2f} ms, {proxies:.0f} touched, {others}"
    yield Figure("P5", f"{subject}, to last ACK", f"<= {limit:.1f} ms", measured, "", cpu <= limit and alone)
    for kind, value in (("to quiet", quiet), ("to quiet, mean", mean)):
        # Until the server rests, its later work counts too, for example the search for problems.
        most = 1.3 * limit
        yield Figure("P5", f"{subject}, {kind}", f"<= {most:.1f} ms", f"{value:.2f} ms", "", value <= most)


_COST: Final = ("cpu_ms", "quiet_ms", "quiet_mean_ms", "proxies", "foreign", "missed")


def growth(values: Values) -> Iterator[Figure]:
    """Yield P6: growth of a change's cost until quiet when the number of services doubles.

    Costs of zero or less have no row: the cost of idling is subtracted, and can be as large as the cost
    itself.
    """
    for before, after in itertools.pairwise(GROWING):
        for connected in ((ALONE, ALONE), (2 * before, 2 * after)):
            small, large = (
                values.get(name(OURS, "policy", size, count, ENDPOINT, "quiet_ms"))
                for size, count in zip((before, after), connected, strict=True)
            )
            if small and large and min(small, large) > 0:
                # Sizes grow by other factors than two, so the ratio is converted to one doubling.
                grown = (large / small) ** (1 / math.log2(after / before))
                who = f"{ALONE} connected" if connected[0] == ALONE else "all connected"
                measured = f"{grown:.2f} ({small:.2f} to {large:.2f} ms)"
                yield Figure(
                    "P6", f"{before} to {after}, {who}", "<= 1.05 per doubling", measured, "", grown <= 1.05
                )


def wholes(values: Values) -> Iterator[Figure]:
    """Yield the rows of goals P7 to P9: start of the server, a mesh-wide setting, and memory."""
    every = 2 * FULL
    yield from _beside("P7", "ready, CPU", values, ("policy", FULL, "ready_cpu_s"), 2, "s")
    bare = values.get(name("bare", every, "cpu_s"))
    served = ("policy", FULL, every)
    words = (*served, "serve_cpu_total_s")
    yield from _beside("P7", f"all {every} served, CPU", values, words, 8, "s", bare)
    yield from _beside("P7", f"all {every} served, wall", values, (*served, "serve_wall_s"), 10, "s")
    setting = (OURS, "policy", FULL, every, SETTING, "last_ack_max_ms")
    yield from _most("P8", "mesh-wide setting changes, to last ACK", values, setting, 2000, "ms")
    yield from _memory(values, every)


def _memory(values: Values, every: int) -> Iterator[Figure]:
    words = ("policy", FULL, every, "memory_mib")
    beside, istiod = _with_peer(values, NARROW, *words)
    held = values.get(name(OURS, *words), beside)
    if held is None or beside is None:
        return
    bare = values.get(name("bare", every, "memory_mib"))
    peers = [f"{value:.0f} {who}" for value, who in ((bare, BARE), (istiod, NARROW)) if value]
    measured = f"{held:.0f} MiB" + (f", {held / bare:.2f} x bare" if bare else "")
    measured += f", {beside:.0f} beside {NARROW}" if beside != held else ""
    wanted = f"<= 350 MiB, below {NARROW}; or <= 1.3 x bare"
    within = held <= 350 and (istiod is None or beside < istiod)
    yield Figure(
        "P9", f"memory, {every} connected", wanted, measured, ", ".join(peers), within or _within(held, bare)
    )


def _within(mean: float, bare: float | None) -> bool:
    return bare is not None and mean <= 1.3 * bare


def storms(values: Values) -> Iterator[Figure]:
    """Yield the rows of goals P10 and P11: all proxies connect at once; an equal snapshot is published."""
    for protocol, case in itertools.product(("delta", "sotw"), ("first start", "restart", "one slow reader")):
        storm = ("storm", protocol, case)
        what = f"{protocol}, {case}"
        yield from _most("P10", f"{what}, last proxy configured", values, (*storm, "configured_s"), 15, "s")
        yield from _most(
            "P11", f"{what}, responses to an equal snapshot", values, (*storm, "responses_after"), 0, ""
        )
        if (protocol, case) == ("delta", "restart"):
            again = (*storm, "sent_again")
            yield from _most("P11", f"{what}, resources sent again, without endpoints", values, again, 0, "")


def latency(values: Values) -> Iterator[Figure]:
    """Yield the rows of goal P12: time from a change of an endpoint to the last sidecar's ACK."""
    for share, limit in (("p50", 30), ("p99", 100)):
        yield from _most(
            "P12", f"event to last ACK, {share}", values, (OURS, "latency", f"{share}_ms"), limit, "ms"
        )


def permissive(values: Values) -> Iterator[Figure]:
    """Yield the rows of goals P13 and P14: a mesh in permissive mode without and with connected sidecars."""
    for size in (FULL // 2, FULL):
        mine, same = (OURS, "permissive", size), (OURS, "policy", size)
        for what, value, limit, unit in (
            ("CPU", "ready_cpu_s", 1.5, "s"),
            ("memory", "ready_mib", 1.2, "MiB"),
        ):
            number, other = (values.get(name(*item, value)) for item in (mine, same))
            if number is not None and other:
                yield _ratio(
                    "P13", f"{size} services, ready, {what}", number, other, limit, unit, "by policy"
                )
        more = (*mine, 0, APPEARS, "quiet_ms")
        yield from _most("P13", f"{size} services, a service appears, to quiet", values, more, 20, "ms")
    for connected, (what, keys, unit) in itertools.product((FULL, 2 * FULL), _PERMISSIVE):
        number, other = _with_peer(values, DEFAULT, "permissive", FULL, connected, *keys)
        if number is not None and other:
            yield _ratio("P14", f"{connected} connected, {what}", number, other, 0.5, unit, DEFAULT)


_PERMISSIVE: Final = (
    ("memory", ("memory_mib",), "MiB"),
    ("CPU to serve all", ("serve_cpu_total_s",), "s"),
    ("an endpoint moves", (ENDPOINT, "cpu_ms"), "ms"),
)


def huge(values: Values) -> Iterator[Figure]:
    """Yield the rows of goal P15: ten thousand services with few connected sidecars."""
    mesh = (OURS, "policy", HUGE)
    yield from _most("P15", f"{HUGE} services, ready, CPU", values, (*mesh, "ready_cpu_s"), 15, "s")
    yield from _most("P15", "memory, 200 connected", values, (*mesh, 200, "memory_mib"), 600, "MiB")
    for kind in ("cpu_ms", "quiet_ms"):
        large, small = (
            values.get(name(OURS, "policy", size, ALONE, ENDPOINT, kind)) for size in (HUGE, FULL)
        )
        if large is not None and small:
            what = "an endpoint moves, to last ACK" if kind == "cpu_ms" else "an endpoint moves, to quiet"
            yield _ratio("P15", what, large, small, 1.3, "ms", f"at {FULL}")


def _with_peer(values: Values, peer: str, *words: object) -> tuple[float | None, float | None]:
    """Return a value of our server and of the mesh peer, from the same run if possible."""
    its = _compared(values, peer, *words)
    beside = its is not None and name(BESIDE, *words) in values
    return _compared(values, BESIDE if beside else OURS, *words), its


def _compared(values: Values, plane: str, *words: object) -> float | None:
    """Return a value for comparisons; None for a change that did not reach all affected sidecars.

    For such a change the measured time is only the limit of the wait.
    """
    return None if values.get(name(plane, *words[:-1], "missed")) else values.get(name(plane, *words))


def _beside(
    number: str,
    subject: str,
    values: Values,
    words: Sequence[object],
    limit: float,
    unit: str,
    bare: float | None = None,
) -> Iterator[Figure]:
    """Yield a row with an upper limit, and the values of istiod (narrow scope) and of a bare server.

    Absolute values differ between machines by a factor of up to two. The ratio to the bare server, with the
    same streams in the same run, does not.
    """
    result, its = _with_peer(values, NARROW, *words)
    if result is not None:
        peers = [f"{value:.4g} {unit}, {who}" for value, who in ((bare, BARE), (its, NARROW)) if value]
        measured = f"{result:.4g} {unit}" + (f", {result / bare:.2f} x bare" if bare else "")
        yield Figure(number, subject, f"<= {limit:g} {unit}", measured, "; ".join(peers), result <= limit)


def _most(
    number: str, subject: str, values: Values, words: Sequence[object], limit: float, unit: str
) -> Iterator[Figure]:
    """Yield the row of a goal that is an upper limit, if the value was measured."""
    result = values.get(name(*words))
    if result is not None:
        measured = f"{result:.4g} {unit}".rstrip()
        yield Figure(number, subject, f"<= {limit:g} {unit}".rstrip(), measured, "", result <= limit)


def _ratio(number: str, subject: str, mine: float, its: float, limit: float, unit: str, peer: str) -> Figure:
    ratio = mine / its
    measured = f"{ratio:.3g} ({mine:.4g} {unit})"
    return Figure(number, subject, f"<= {limit:g} x {peer}", measured, f"{its:.4g} {unit}", ratio <= limit)
