"""Tests of the saved state of a cluster: its format, and the refusal of damaged files."""

import hashlib
from datetime import UTC, datetime

import pytest

from meshwright.kube.reflector.object_cache import Item
from meshwright.mesh.kinds import POD
from meshwright.providers.kubernetes import last_state as module
from meshwright.providers.kubernetes.identity import Identity
from meshwright.providers.kubernetes.last_state import (
    SavedState,
    SavedStateError,
    SavedWatch,
    fits,
    read,
    written,
)
from meshwright.providers.kubernetes.projection import projected
from meshwright.providers.kubernetes.resources import CORE
from tests.unit.providers.kubernetes import objects
from tests.unit.providers.kubernetes.cluster import TARGETS

HEARD = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
PODS = {("shop", name): Item("7", projected(POD, "v1", objects.pod(name))) for name in ("b", "a")}
EAST = Identity("east", "5a1e", "uid-of-east")
KEPT = SavedState(EAST, (SavedWatch(TARGETS, "shop", HEARD, {}), SavedWatch(CORE[POD], None, HEARD, PODS)))


def test_saved_state_round_trips_in_a_fixed_order() -> None:
    """The same state gives the same bytes, whatever the order of its objects."""
    saved_state = read(written(KEPT))
    assert saved_state == SavedState(EAST, (KEPT.watches[1], KEPT.watches[0]))
    again = {key: PODS[key] for key in sorted(PODS)}
    assert written(SavedState(EAST, (SavedWatch(CORE[POD], None, HEARD, again), KEPT.watches[0]))) == written(
        KEPT
    )
    assert written(saved_state) == written(KEPT)
    assert read(written(SavedState())) == SavedState()


def test_state_in_the_pinned_format_is_read() -> None:
    """The format is pinned, because another format needs another version and would be discarded."""
    item = r"""["shop","a","7","{\"kind\":\"Pod\"}"]"""
    content = (
        '{"cluster":{"name": "east", "server": "5a1e", "uid": "uid-of-east"},"watches":['
        '{"group":"","version":"v1","plural":"pods","kind":"Pod","namespaced":true,'
        f'"namespace":null,"heard":"2026-01-02T03:04:05+00:00","items":[{item}]}}]}}'
    )
    head = f'{{"version": 2, "sha256": "{hashlib.sha256(content.encode()).hexdigest()}"}}'
    heard = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert read(f"{head}\n{content}\n".encode()) == SavedState(
        EAST, (SavedWatch(CORE[POD], None, heard, {("shop", "a"): Item("7", '{"kind":"Pod"}')}),)
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"10.0.0.1", b"10.0.0.2"),
        lambda content: content.replace(b'"version": 2', b'"version": 1'),
        lambda content: b"",
        lambda content: b"\n" + content,
        lambda content: content.partition(b"\n")[2],
        lambda content: b"\xff" + content,
    ],
)
def test_damaged_state_is_refused_as_a_whole(damage: object) -> None:
    """The checksum and the version in the first line must fit."""
    assert callable(damage)
    with pytest.raises(SavedStateError):
        read(damage(written(KEPT)))


def test_saved_state_contains_no_secret() -> None:
    """The environment of a Pod's containers is left out."""
    assert b"hunter2" not in written(KEPT)
    assert b"PASSWORD" not in written(KEPT)


def test_state_above_the_size_limit_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger state is not saved."""
    assert fits(KEPT)
    monkeypatch.setattr(module, "MOST", 100)
    assert not fits(KEPT)
