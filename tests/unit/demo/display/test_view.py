"""Tests of the live view: debug pages, counters, and the rendered screen."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console
from rich.screen import Screen

from demo.apps.counters import Counters
from demo.display import picture
from demo.display.picture import Pair, Picture, Sidecar
from demo.display.view import FullScreen, render, summary
from demo.topology import BOOKBUYER, PLACES

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PICTURE = Picture(
    mode="explicit",
    mesh="/state/mesh",
    variants="/clone/demo/manifests",
    now=NOW,
    pairs=(
        Pair(
            "bookbuyer", "bookstore", True, ("TrafficTarget bookstore/bookstore",), 4.0, (("200", 12),), "200"
        ),
        Pair("bookthief", "bookstore", False, (), 4.0, (("403", 12),), "403"),
    ),
    split=(("bookstore-v1", 30), ("bookstore-v2", 10)),
    sidecars=(
        Sidecar("bookbuyer", "connected", (("CDS", "synced"), ("LDS", "asked"))),
        Sidecar("mysql", "connected", (("LDS", "nacked"),)),
        Sidecar("bookthief", "expected", ()),
    ),
    certificates=(("bookbuyer/bookbuyer", NOW + timedelta(hours=23, minutes=59)),),
    problems=("MW1 something is wrong",),
)


HEAD = """\
Meshwright: the bookstore   interception: explicit   03:04:05 UTC
Edit the manifests in /state/mesh and watch the effect; /clone/demo/manifests has variants to copy.
Press Ctrl-C to stop the demo.
"""
CALLS = """
Calls in the last few seconds
client     service    policy   req/s  observed  allowed by
bookbuyer  bookstore  allowed  4.0    200 (12)  TrafficTarget bookstore/bookstore
bookthief  bookstore  denied   4.0    403 (12)

Books bought by bookbuyer
bookstore-v1 75 % (30), bookstore-v2 25 % (10)
"""
PROBLEMS = """
Problems in the manifests
MW1 something is wrong
"""
SIDECARS = """
Sidecars
workload   state      configuration
bookbuyer  connected  in sync
mysql      connected  LDS nacked
bookthief  expected   -

Service certificates
service account      valid for
bookbuyer/bookbuyer  23 h 59 min
"""


def _text(shown: object, width: int = 100, height: int = 40) -> str:
    console = Console(width=width, height=height, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123 - recorded
    with console.file:
        console.print(shown)
    return "".join(f"{line.rstrip()}\n" for line in console.export_text().splitlines())


def test_each_part_of_the_view_has_a_title_and_its_own_lines() -> None:
    """The whole screen: no line has cells of two tables."""
    assert _text(render(PICTURE)) == HEAD + CALLS + PROBLEMS + SIDECARS


@pytest.mark.parametrize("width", [40, 60, 80, 160, 300])
def test_sidecars_and_certificates_are_apart_at_any_width(width: int) -> None:
    """Sidecars and certificates are two tables below one another, whole on narrow and on wide terminals."""
    assert _text(render(PICTURE), width).endswith(SIDECARS)


def test_narrow_view_shortens_cells_and_keeps_every_row() -> None:
    """On 60 columns the list of policies is shortened, and each call still has one line."""
    narrow = """
Calls in the last few seconds
client     service    policy   req/s  observed  allowed by
bookbuyer  bookstore  allowed  4.0    200 (12)  TrafficTarg…
bookthief  bookstore  denied   4.0    403 (12)
"""
    assert narrow in _text(render(PICTURE), 60)


def test_low_terminal_gives_the_number_of_hidden_lines() -> None:
    """A terminal of 12 lines shows the first 11, and the last line counts the others."""
    shown = _text(Screen(FullScreen(render(PICTURE))), height=12)
    assert shown == f"{HEAD}{CALLS}13 more lines: enlarge the terminal\n"


def test_high_terminal_shows_every_line() -> None:
    """A terminal with exactly as many lines as the view shows the whole view."""
    shown = _text(Screen(FullScreen(render(PICTURE))), height=24)
    assert shown == HEAD + CALLS + PROBLEMS + SIDECARS


def test_problems_after_the_third_are_counted() -> None:
    """Three problems are shown, and the number of the others."""
    shown = _text(render(replace(PICTURE, problems=("MW1 a", "MW2 b", "MW3 c", "MW4 d", "MW5 e"))))
    problems = "\nProblems in the manifests\nMW1 a\nMW2 b\nMW3 c\nand 2 more\n"
    assert shown == HEAD + CALLS + problems + SIDECARS


def test_summary_has_the_picture_in_one_line() -> None:
    """Calls, books, sidecars and the first problem are parts of one line."""
    assert summary(PICTURE) == (
        "bookbuyer -> bookstore: allowed, 4.0 req/s, last 200; "
        "bookthief -> bookstore: denied, 4.0 req/s, last 403; "
        "books bought: bookstore-v1 75 % (30), bookstore-v2 25 % (10); 1 of 3 sidecars in sync; "
        "1 problem, for example: MW1 something is wrong"
    )


def test_unanswered_control_plane_is_shown_with_the_error() -> None:
    """A picture without answers has empty tables, and the reason in red in the head."""
    empty = Picture("explicit", "m", "v", NOW, silent="/debug/proxy: refused")
    assert _text(render(empty)) == (
        "Meshwright: the bookstore   interception: explicit   03:04:05 UTC\n"
        "Edit the manifests in m and watch the effect; v has variants to copy. "
        "Press Ctrl-C to stop the demo.\n"
        "The control plane does not answer: /debug/proxy: refused\n"
        "\nCalls in the last few seconds\nclient  service  policy  req/s  observed  allowed by\n"
        "\nBooks bought by bookbuyer\nnone\n"
        "\nSidecars\nworkload  state  configuration\n"
        "\nService certificates\nservice account  valid for\n"
    )
    assert (
        summary(empty) == "0 of 0 sidecars in sync; The control plane does not answer: /debug/proxy: refused"
    )


def test_pairs_join_policy_and_counts() -> None:
    """Rates are differences over time, and policy is from the server's own answer."""
    access = {
        "access": [
            {
                "source": "bookbuyer/bookbuyer",
                "destination_service": "bookstore/bookstore",
                "port": 14001,
                "allowed": True,
                "by": ["TrafficTarget bookstore/bookstore"],
            }
        ]
    }
    before = {BOOKBUYER.name: Counters(calls={"bookstore": Counter({"200": 10})}, last={"bookstore": "200"})}
    after = {
        BOOKBUYER.name: Counters(
            calls={"bookstore": Counter({"200": 13, "403": 1})},
            last={"bookstore": "403"},
            identities=Counter({"bookstore-v1": 13}),
        )
    }
    pairs = picture.pairs(access, before, after, 2.0)
    assert pairs[0] == Pair(
        "bookbuyer",
        "bookstore",
        True,
        ("TrafficTarget bookstore/bookstore",),
        2.0,
        (("200", 3), ("403", 1)),
        "403",
    )
    assert pairs[1] == Pair("bookthief", "bookstore", None, (), 0.0, (), "-")
    assert picture.split(before, after) == (("bookstore-v1", 13), ("bookstore-v2", 0))


def test_debug_pages_are_read() -> None:
    """Sidecars are in the table's order, certificates are sorted, and problems of severity info omitted."""
    proxies = {
        "proxies": [{"uuid": PLACES[1].uuid, "state": "connected", "held": False, "sync": {"LDS": "synced"}}]
    }
    sidecars = picture.sidecars(proxies)
    assert [sidecar.name for sidecar in sidecars] == [place.name for place in PLACES]
    assert sidecars[0] == Sidecar("bookbuyer", "unknown", ())
    assert sidecars[1] == Sidecar("bookthief", "connected", (("LDS", "synced"),))
    certificates = {
        "service_certificates": [
            {"identity": "b/b", "not_after": "2026-01-02T03:04:05.000Z"},
            {"identity": "a/a", "not_after": "2026-01-03T03:04:05.000Z"},
        ]
    }
    assert picture.certificates(certificates) == (("a/a", NOW + timedelta(days=1)), ("b/b", NOW))
    problems = {"problems": [{"severity": "info", "line": "i"}, {"severity": "error", "line": "e"}]}
    assert picture.problems(problems) == ("e",)
