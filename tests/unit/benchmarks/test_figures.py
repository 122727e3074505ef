"""Tests of the figures that are derived from benchmark values."""

from pathlib import Path

import pytest

from benchmarks.figures.goals import ENDPOINT, Figure, figures
from benchmarks.figures.results import Values, name, read, write
from benchmarks.table import rows


def _cost(services: int, connected: int, **values: float) -> Values:
    cost = {"cpu_ms": 4.9, "quiet_ms": 6.0, "quiet_mean_ms": 6.5, "proxies": 10.0, "foreign": 0, "missed": 0}
    place = ("ours", "policy", services, connected, ENDPOINT)
    return {name(*place, key): value for key, value in (cost | values).items()}


def _reached(values: Values) -> list[tuple[str, str, bool]]:
    return [(figure.number, figure.what, figure.reached) for figure in figures(values)]


def test_endpoint_cost_is_judged_by_the_number_of_touched_sidecars() -> None:
    """The limit is 3 ms, and 0.2 ms for each sidecar, to the last ACK.

    To quiet it is 1.3 times that, for the mean and the median.
    """
    what = "1000 services, 2000 connected"
    result = _reached(_cost(1000, 2000, quiet_mean_ms=6.6))
    assert result == [
        ("P5", f"{what}, to last ACK", True),
        ("P5", f"{what}, to quiet", True),
        ("P5", f"{what}, to quiet, mean", False),
    ]


def test_byte_sent_to_an_unconcerned_sidecar_misses_the_figure() -> None:
    """This holds however little CPU time the change took."""
    first, *_ = figures(_cost(1000, 2000, cpu_ms=1.0, foreign=2))
    assert (first.measured, first.reached) == ("1.00 ms, 10 touched, 2 others, 0 missed", False)


@pytest.mark.parametrize(
    ("connected", "peer", "reached"), [(2000, 21.3, True), (2000, 16.0, False), (12, 3.3, True)]
)
def test_peer_at_its_best_is_the_reference(connected: int, peer: float, reached: bool) -> None:
    """The limit is 0.3 of istiod's value with all sidecars connected.

    With only those concerned, it is 1.5 times that value.
    """
    place = name("istiod-narrow", "policy", 1000, connected, ENDPOINT, "cpu_ms")
    *_, last = figures(_cost(1000, connected) | {place: peer})
    assert (last.peer, last.reached) == (f"{peer:.4g} ms", reached)


@pytest.mark.parametrize("who", ["istiod-narrow", "ours"])
def test_change_that_missed_a_sidecar_is_not_compared(who: str) -> None:
    """Its CPU time is that of a minute's waiting, and our own figure reports it."""
    place = ("policy", 1000, 2000, ENDPOINT)
    values = _cost(1000, 2000) | {name("istiod-narrow", *place, "cpu_ms"): 40.0}
    ratio = ("P5", "1000 services, 2000 connected", True)
    assert _reached(values)[-1] == ratio
    missed = {name(who, *place, "missed"): 2.0}
    assert ratio not in _reached(values | missed)
    beside = {
        name("ours-beside-istiod", *place, key): value for key, value in (("cpu_ms", 5.0), ("missed", 1))
    }
    assert ratio not in _reached(values | beside)


PEERS = (
    ("P5", "istiod-narrow", ("policy", 1000, 2000, ENDPOINT, "cpu_ms")),
    ("P7", "istiod-narrow", ("policy", 1000, "ready_cpu_s")),
    ("P7", "istiod-narrow", ("policy", 1000, 2000, "serve_wall_s")),
    ("P9", "istiod-narrow", ("policy", 1000, 2000, "memory_mib")),
    ("P14", "istiod-default", ("permissive", 1000, 2000, "memory_mib")),
)


@pytest.mark.parametrize(("number", "peer", "words"), PEERS)
def test_peer_is_compared_with_our_value_of_the_same_run(
    number: str, peer: str, words: tuple[object, ...]
) -> None:
    """Our value of another run is used only if that run has none, and if there is a peer."""
    elsewhere, its = {name("ours", *words): 100.0}, {name(peer, *words): 140.0}
    same = {name("ours-beside-istiod", *words): 150.0}
    (apart,) = figures(elsewhere | its)
    (beside,) = figures(elsewhere | same | its)
    assert (apart.number, beside.number) == (number, number)
    assert "150" not in apart.measured
    assert "150" in beside.measured
    assert not any("150" in figure.measured for figure in figures(elsewhere | same))


def test_memory_must_be_below_the_peers_of_the_same_run() -> None:
    """Our lower value of another run does not count."""
    words = ("policy", 1000, 2000, "memory_mib")
    values = {name("ours", *words): 330.0, name("istiod-narrow", *words): 340.0}
    assert _reached(values) == [("P9", "memory, 2000 connected", True)]
    assert _reached(values | {name("ours-beside-istiod", *words): 345.0})[0][-1] is False


def test_growth_is_reported_per_doubling() -> None:
    """Two doublings of 1.05 are 1.1025."""
    values = _cost(1000, 12, quiet_ms=4.0) | _cost(4000, 12, quiet_ms=4.41)
    result = {figure.what: figure for figure in figures(values) if figure.number == "P6"}
    assert result["1000 to 4000, 12 connected"].measured == "1.05 (4.00 to 4.41 ms)"


def test_cost_of_zero_or_less_has_no_growth() -> None:
    """The idle cost of a quiet server varies, so the rest of a small cost may be negative."""
    values = _cost(250, 12, quiet_ms=6.0) | _cost(500, 12, quiet_ms=-3.35) | _cost(1000, 12, quiet_ms=2.1)
    assert [figure for figure in figures(values) if figure.number == "P6"] == []


def test_memory_limit_is_the_figure_or_the_bare_servers_memory() -> None:
    """400 MiB are too much, but not beside a bare server with 320 MiB."""
    held = {name("ours", "policy", 1000, 2000, "memory_mib"): 400.0}
    bare = {name("bare", 2000, "memory_mib"): 320.0}
    assert _reached(held) == [("P9", "memory, 2000 connected", False)]
    assert _reached(held | bare) == [("P9", "memory, 2000 connected", True)]


def test_cost_of_serving_all_is_shown_as_a_multiple_of_the_bare_server() -> None:
    """Both are from the same run, because a slower machine changes both. The multiple does not decide."""
    served = {name("ours", "policy", 1000, 2000, "serve_cpu_total_s"): 12.0}
    (alone,) = figures(served)
    (beside,) = figures(served | {name("bare", 2000, "cpu_s"): 3.0})
    what = ("P7", "all 2000 served, CPU", "<= 8 s")
    assert alone == Figure(*what, "12 s", "", reached=False)
    assert beside == Figure(*what, "12 s, 4.00 x bare", "3 s, bare grpc.aio", reached=False)


def test_unmeasured_values_have_no_figure() -> None:
    """A missing row is correct; a zero would be within any limit."""
    assert list(figures({})) == []


def test_ratios_are_to_the_peer_of_the_same_run() -> None:
    """P1 is compared with the bare handler, P2 and P4 with go-control-plane."""
    place = ("fanout", "P2 delta")
    values = {
        name("fanout", "P1 delta", "meshwright", "push_us"): 200.0,
        name("fanout", "P1 delta", "bare grpc.aio", "push_us"): 150.0,
        name(*place, "meshwright", "push_us"): 150.0,
        name(*place, "go-control-plane", "push_us"): 1000.0,
        name(*place, "meshwright", "connect_s"): 2.0,
        name(*place, "go-control-plane", "connect_s"): 7.0,
    }
    result = [(figure.number, figure.measured.split()[0], figure.reached) for figure in figures(values)]
    assert result == [("P1", "1.33", False), ("P2", "0.15", True), ("P4", "0.286", False)]


def test_before_and_after_are_in_one_row() -> None:
    """A figure of only one side has a row, too."""
    before = [Figure("P7", "ready", "<= 2 s", "10 s", "", reached=False)]
    after = [
        Figure("P7", "ready", "<= 2 s", "1 s", "0.8 s", reached=True),
        Figure("P9", "b", "c", "d", "", reached=True),
    ]
    assert rows(before, after) == [
        ("P7", "ready", "<= 2 s", "10 s", "no", "1 s", "0.8 s", "yes"),
        ("P9", "b", "c", "", "", "d", "", "yes"),
    ]


def test_values_are_read_from_the_files_of_all_programs(tmp_path: Path) -> None:
    """A folder means its files. Of two equal names, the later value is used."""
    write(tmp_path / "a.json", {}, {"x": 1.0, "y": 2.0})
    write(tmp_path / "side" / "b.json", {}, {"y": 3.0}, more=[1])
    assert read([tmp_path, tmp_path / "side" / "b.json"]) == {"x": 1.0, "y": 3.0}
