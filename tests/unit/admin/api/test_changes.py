"""Tests of change events: the difference between two fingerprints of the mesh."""

from dataclasses import replace

from meshwright.admin.api.events import NAMED, MeshFingerprint, changed
from meshwright.mesh.identity import ProxyName
from tests.unit.admin.conftest import NAME, NOW

MESH = object()
BEFORE = MeshFingerprint(MESH, (), frozenset(), frozenset({NAME}), 3, None)
AT = "2026-01-02T03:04:05.000Z"


def test_equal_fingerprints_make_no_event() -> None:
    """Two equal fingerprints of the mesh make no event."""
    assert changed(BEFORE, replace(BEFORE), NOW) is None


def test_one_event_lists_all_changed_parts() -> None:
    """One event lists all changed parts and each newly connected proxy."""
    after = MeshFingerprint(object(), (), frozenset({NAME}), frozenset(), 4, 7.0)
    assert changed(BEFORE, after, NOW) == {
        "at": AT,
        "parts": ["mesh", "proxies", "answers", "figures"],
        "came": [str(NAME)],
        "went": [],
        "more": 0,
    }


def test_fewer_expected_proxies_are_a_change_of_proxies() -> None:
    """A proxy that is no longer expected changes the part "proxies".

    No proxy has to connect or disconnect.
    """
    assert changed(BEFORE, replace(BEFORE, expected=frozenset()), NOW) == {
        "at": AT,
        "parts": ["proxies"],
        "came": [],
        "went": [],
        "more": 0,
    }


def test_event_names_a_bounded_number_of_proxies_and_counts_the_others() -> None:
    """An event names at most `NAMED` proxies and counts the others, so that its size is bounded."""
    names = frozenset(ProxyName.parse(f"uuid-{number:04}.store.shop") for number in range(NAMED + 30))
    went = changed(replace(BEFORE, connected=names), BEFORE, NOW)
    assert went is not None
    assert (went["went"], went["more"]) == ([f"uuid-{n:04}.store.shop" for n in range(NAMED)], 30)
