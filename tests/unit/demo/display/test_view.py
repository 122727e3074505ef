"""The live view: what it reads from the debug pages and the programs, and what it says of it."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from rich.console import Console

from demo.apps.counters import Counters
from demo.display import picture
from demo.display.picture import Pair, Picture, Sidecar
from demo.display.view import render, summary
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


def _text(shown: Picture) -> str:
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123 - recorded
    with console.file:
        console.print(render(shown))
    return console.export_text()


def test_the_view_says_what_is_allowed_and_what_is_seen() -> None:
    """Policy, its object, rate, outcomes, split, sync, expiry, problems and where to edit are all there."""
    text = _text(PICTURE)
    for expected in (
        "/state/mesh",
        "/clone/demo/manifests",
        "allowed",
        "TrafficTarget bookstore/bookstore",
        "200 (12)",
        "denied",
        "403 (12)",
        "bookstore-v1 75 % (30)   bookstore-v2 25 % (10)",
        "in sync",
        "LDS nacked",
        "expected",
        "23 h 59 min",
        "MW1 something is wrong",
    ):
        assert expected in text


def test_the_line_for_programs_that_read_along() -> None:
    """The same in one line."""
    assert summary(PICTURE) == (
        "bookbuyer>bookstore allowed 4.0/s 200  bookthief>bookstore denied 4.0/s 403  split 30:10  "
        "sidecars 1/3 in sync  1 problems, the first: MW1 something is wrong"
    )


def test_a_silent_control_plane_is_said() -> None:
    """An empty picture renders, and says why it is empty."""
    empty = Picture("explicit", "m", "v", NOW, silent="/debug/proxy: refused")
    assert "the control plane does not answer: /debug/proxy: refused" in _text(empty)
    assert summary(empty).endswith("/debug/proxy: refused")


def test_pairs_join_policy_and_counts() -> None:
    """Rates are differences over time, policy comes from the server's own answer."""
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
    found = picture.pairs(access, before, after, 2.0)
    assert found[0] == Pair(
        "bookbuyer",
        "bookstore",
        True,
        ("TrafficTarget bookstore/bookstore",),
        2.0,
        (("200", 3), ("403", 1)),
        "403",
    )
    assert found[1] == Pair("bookthief", "bookstore", None, (), 0.0, (), "-")
    assert picture.split(before, after) == (("bookstore-v1", 13), ("bookstore-v2", 0))


def test_debug_pages_are_read() -> None:
    """Sidecars in the order of the table, certificates sorted, problems without mere information."""
    proxies = {
        "proxies": [{"uuid": PLACES[1].uuid, "state": "connected", "held": False, "sync": {"LDS": "synced"}}]
    }
    found = picture.sidecars(proxies)
    assert [sidecar.name for sidecar in found] == [place.name for place in PLACES]
    assert found[0] == Sidecar("bookbuyer", "unknown", ())
    assert found[1] == Sidecar("bookthief", "connected", (("LDS", "synced"),))
    certificates = {
        "service_certificates": [
            {"identity": "b/b", "not_after": "2026-01-02T03:04:05.000Z"},
            {"identity": "a/a", "not_after": "2026-01-03T03:04:05.000Z"},
        ]
    }
    assert picture.certificates(certificates) == (("a/a", NOW + timedelta(days=1)), ("b/b", NOW))
    problems = {"problems": [{"severity": "info", "line": "i"}, {"severity": "error", "line": "e"}]}
    assert picture.problems(problems) == ("e",)
