"""What is kept for the server after, and that nothing is used of what is damaged."""

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


def test_what_is_written_is_read_again() -> None:
    """The same bytes for the same things, in whatever order they came."""
    found = read(written(KEPT))
    assert found == SavedState(EAST, (KEPT.watches[1], KEPT.watches[0]))
    again = {key: PODS[key] for key in sorted(PODS)}
    assert written(SavedState(EAST, (SavedWatch(CORE[POD], None, HEARD, again), KEPT.watches[0]))) == written(
        KEPT
    )
    assert written(found) == written(KEPT)
    assert read(written(SavedState())) == SavedState()


def test_what_a_server_before_wrote_is_read() -> None:
    """The form is pinned: another is another version, and the next server would begin with nothing."""
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
def test_nothing_is_used_of_what_is_damaged(damage: object) -> None:
    """Whatever happened to it."""
    assert callable(damage)
    with pytest.raises(SavedStateError):
        read(damage(written(KEPT)))


def test_nothing_secret_is_kept() -> None:
    """Of a Pod neither its environment nor its commands."""
    assert b"hunter2" not in written(KEPT)
    assert b"PASSWORD" not in written(KEPT)


def test_what_is_kept_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is larger is not kept at all."""
    assert fits(KEPT)
    monkeypatch.setattr(module, "MOST", 100)
    assert not fits(KEPT)
