"""Tests of incremental evaluation: random programs and histories, and mutants to be detected."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.engine import node, sorted_keys
from meshwright.engine.graph import Graph
from meshwright.engine.index import Entries
from meshwright.engine.node import Derivation, Node, RaisedError
from meshwright.engine.sorted_keys import with_key
from meshwright.engine.table import Table
from tests.tools.hypothesis_profiles import examples
from tests.unit.engine.programs import mismatch

Patch = Callable[[pytest.MonkeyPatch], None]


@settings(max_examples=examples(60, fresh=600), deadline=None)
@given(st.integers(0, 2**32))
def test_incremental_outcomes_equal_naive_outcomes(seed: int) -> None:
    """For any program, history and order of reads, the outcomes equal a naive evaluation."""
    assert mismatch(random.Random(seed), steps=8) is None  # noqa: S311 - dice


@pytest.mark.fuzzed
@pytest.mark.parametrize("few", [0, 1, 2])
def test_outcomes_are_right_for_any_limit_of_few_readers(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Low limits exercise readers in tuples and dictionaries, and keys in tuples and SortedKeys."""
    monkeypatch.setattr(node, "FEW", few)
    monkeypatch.setattr(sorted_keys, "COPIED", few + 1)
    assert _first_mismatch(examples(100, fresh=300)) is None


def _without_reads(which: Callable[[Any], bool]) -> Patch:
    """Return a patch that drops the recorded reads of some nodes."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        link = Graph._link

        def forgetful(self: Graph, node: Derivation, reads: dict[Node, None]) -> None:
            link(self, node, {item: None for item in reads if not which(item)})

        monkeypatch.setattr(Graph, "_link", forgetful)

    return patch


def _without_absent_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not record the read of an absent key."""
    read = Table._read

    def forgetful(self: Table[Any, Any], key: object) -> None:
        if key in self._values:
            read(self, key)

    monkeypatch.setattr(Table, "_read", forgetful)


def _replacing(target: type, name: str, replacement: Callable[..., object]) -> Patch:
    return lambda monkeypatch: monkeypatch.setattr(target, name, replacement)


def _only_values(self: Derivation, outcome: object) -> bool:
    return (
        bool(self.outcome == outcome)
        or isinstance(self.outcome, RaisedError)
        or isinstance(outcome, RaisedError)
    )


def _equal(self: Derivation, outcome: object) -> bool:
    """Treat 1 as True."""
    return bool(self.outcome == outcome)


def _first_read_only(self: Graph, node: Derivation) -> bool:
    for read in node.reads[:1]:
        if isinstance(read, Derivation):
            self.refresh(read)
        return read.changed_at > node.verified_at
    return False


def _sources_only(self: Graph, node: Derivation) -> bool:
    """Do not refresh derived values before their changes are compared."""
    return any(read.changed_at > node.verified_at for read in node.reads)


def _one_step(self: Graph, changed: Node) -> None:
    """Mark the readers, but not the readers of readers."""
    for reader in changed.readers:
        reader.stale = True


def _first_reads_for_ever(self: Graph, node: Derivation, reads: dict[Node, None]) -> None:
    """Keep the reads of the first run."""
    if not node.reads:
        node.reads = tuple(reads)
        for read in reads:
            read.read_by(node)


def _join_alone(self: Entries[Any, Any], entry: Any, key: Any) -> None:
    """Add a key to an entry without marking the entry's readers."""
    self._members[entry] = with_key(self._members.get(entry, ()), key)


def _read_by_one(self: Node, reader: Derivation) -> None:
    """Drop the existing readers when another one is added."""
    self.readers = (reader,)


def _linked_once(self: Graph, node: Derivation, reads: dict[Node, None]) -> None:
    """Treat reads of equal number as the same."""
    if len(reads) != len(node.reads):
        _LINK(self, node, reads)


_LINK = Graph._link

MUTANTS: dict[str, Patch] = {
    "reads of absent keys are not recorded": _without_absent_reads,
    "reads of the set of keys are not recorded": _without_reads(lambda node: "set of keys" in _origin(node)),
    "reads of the set of entries are not recorded": _without_reads(
        lambda node: "set of entries" in _origin(node)
    ),
    "reads of entries are not recorded": _without_reads(lambda node: _origin(node) in ("by value", "placed")),
    "reads of a firewall are not recorded": _without_reads(lambda node: "wall" in _origin(node)),
    "reads of inputs are not recorded": _without_reads(lambda node: _origin(node) == "inputs"),
    "reads of derived values are not recorded": _without_reads(lambda node: isinstance(node, Derivation)),
    "every outcome is taken for the old one": _replacing(Derivation, "outcome_is", lambda *_: True),
    "errors are not compared": _replacing(Derivation, "outcome_is", _only_values),
    "values of different types are equal": _replacing(Derivation, "outcome_is", _equal),
    "only the first read is looked at": _replacing(Graph, "_reads_changed", _first_read_only),
    "derived reads are not brought up to date": _replacing(Graph, "_reads_changed", _sources_only),
    "marks go one step": _replacing(Graph, "_mark", _one_step),
    "reads are those of the first time": _replacing(Graph, "_link", _first_reads_for_ever),
    "reads of equal number are the same": _replacing(Graph, "_link", _linked_once),
    "a node has one reader": _replacing(Node, "read_by", _read_by_one),
    "an entry's readers are not told of a new key": _replacing(Entries, "_join", _join_alone),
}


def _origin(node: Any) -> str:
    return str(getattr(node, "origin", ""))


def _first_mismatch(programs: int) -> int | None:
    """Return the seed of the first program that differs, None if no program differs."""
    return next((seed for seed in range(programs) if _differs(seed)), None)


def _differs(seed: int) -> bool:
    return mismatch(random.Random(seed), steps=8) is not None  # noqa: S311 - dice


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_of_the_engine_is_detected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine with this fault differs from a naive evaluation within 2000 programs.

    Negative control: without the fault the same program does not differ.
    """
    with monkeypatch.context() as patch:
        MUTANTS[name](patch)
        number = _first_mismatch(2000)
    assert number is not None
    assert not _differs(number)
