"""What an event says of two moments."""

from dataclasses import replace

from meshwright.admin.api.events import NAMED, MeshFingerprint, changed
from meshwright.mesh.identity import ProxyName
from tests.unit.admin.conftest import NAME, NOW

MESH = object()
BEFORE = MeshFingerprint(MESH, (), frozenset(), frozenset({NAME}), 3, None)
AT = "2026-01-02T03:04:05.000Z"


def test_nothing_is_said_of_nothing() -> None:
    """Two looks at a mesh in which nothing happened."""
    assert changed(BEFORE, replace(BEFORE), NOW) is None


def test_all_that_is_other_is_named() -> None:
    """In one event."""
    after = MeshFingerprint(object(), (), frozenset({NAME}), frozenset(), 4, 7.0)
    assert changed(BEFORE, after, NOW) == {
        "at": AT,
        "parts": ["mesh", "proxies", "answers", "figures"],
        "came": [str(NAME)],
        "went": [],
        "more": 0,
    }


def test_one_that_is_expected_no_longer_is_a_change() -> None:
    """Also where nobody came or went."""
    assert changed(BEFORE, replace(BEFORE, expected=frozenset()), NOW) == {
        "at": AT,
        "parts": ["proxies"],
        "came": [],
        "went": [],
        "more": 0,
    }


def test_a_storm_is_counted() -> None:
    """An event has a bound, whatever happens to the mesh."""
    names = frozenset(ProxyName.parse(f"uuid-{number:04}.store.shop") for number in range(NAMED + 30))
    went = changed(replace(BEFORE, connected=names), BEFORE, NOW)
    assert went is not None
    assert (went["went"], went["more"]) == ([f"uuid-{n:04}.store.shop" for n in range(NAMED)], 30)
