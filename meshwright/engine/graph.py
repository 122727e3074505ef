"""Graph of reads: which values a change concerns, and how a value is brought up to date.

A change happens in stages. First the inputs are written, together with the indexes over them. Then the
indexes over derived values and the firewalls are updated in the order of their creation: they know at once
whether they have changed, so only readers of real changes are marked. All other derived values are only
marked, and computed on demand. A stage may only depend on earlier stages.
"""

import itertools
import threading
from collections.abc import Iterable, Iterator
from threading import get_ident
from typing import Any, Protocol

from meshwright.engine.errors import BusyError, CycleError, OrderError
from meshwright.engine.node import Derivation, Function, Gate, Node, RaisedError, Source


class Edit(Protocol):
    """Prepared write of one input of the graph."""

    def __call__(self) -> None:
        """Write the input to the table."""


class Stage(Protocol):
    """A part of the graph updated with every change of inputs: a firewall or a derived index."""

    def settle(self) -> None:
        """Update the values of the stage, and mark the derived values computed from changed ones."""


class Graph:
    """Cache of derived values with the reads of each.

    One thread changes the graph. Other threads may read values, one at a time, and see the state before or
    after a change.

    `computed` counts function runs, `stopped` the runs with an unchanged result, and `reused` the marked
    values that turned out to be up to date without a run.
    """

    def __init__(self) -> None:
        self.revision = 1
        self.computed = self.stopped = self.reused = 0
        self.lock = threading.RLock()
        self._computing_in = 0
        self._frames: list[dict[Node, None]] = []
        self._path: dict[Derivation, None] = {}
        self._cycles: dict[Derivation, CycleError] = {}
        self._unread: dict[Node, None] = {}
        self._raised: dict[int, Exception] = {}
        self._stages: list[Stage] = []
        self._families: dict[object, dict[object, Function]] = {}

    def apply(self, edits: Iterable[Edit]) -> None:
        """Drop unneeded values, then write inputs as one change.

        Raises BusyError from within a computation.
        """
        with self.lock:
            self.collect()
            self.revision += 1
            for edit in edits:
                edit()
            self.settle()

    def settle(self) -> None:
        """Update every stage, in order. Call this after adding a stage outside of a change."""
        for stage in self._stages:
            stage.settle()

    def collect(self, most: int | None = None) -> bool:
        """Drop values without readers that are not kept, and their reads; return True if any are left.

        Drops at most `most` values, so that a large clean-up can be split into parts. Raises BusyError from
        within a computation, because the reads are not complete then.
        """
        with self.lock:
            if self._path:
                raise BusyError(f"inputs cannot change while {next(reversed(self._path))} is computed")
            while self._raised:
                _drop_tracebacks(self._raised.popitem()[1])
            for _ in itertools.count() if most is None else range(most):
                if not self._unread:
                    break
                self._forget(self._unread.popitem()[0])
            return bool(self._unread)

    @property
    def computing(self) -> bool:
        """True if the calling thread is computing a value, so that reads are recorded."""
        return self.reads() is not None

    def reads(self) -> dict[Node, None] | None:
        """Return the record of the calling thread's reads; `None` outside of a computation."""
        # `_computing_in` is written before the frame is pushed, so no other thread takes it for its own.
        frames = self._frames
        return frames[-1] if frames and self._computing_in == get_ident() else None

    def families(self, function: object) -> dict[object, Function]:
        """Return the cached values of one derived function by source."""
        functions = self._families.get(function)
        if functions is None:
            functions = self._families[function] = {}
        return functions

    def size(self) -> int:
        """Return the number of cached derived values."""
        return sum(len(family.nodes) for families in self._families.values() for family in families.values())

    def add_stage(self, stage: Stage) -> int:
        """Append a stage; return the stage's number, which is the level of the stage's nodes."""
        self._stages.append(stage)
        return len(self._stages)

    def record(self, node: Node) -> None:
        """Record that the current computation has read a node."""
        if (reads := self.reads()) is not None:
            reads[node] = None  # a dictionary for its order: see _reads_changed

    def changed(self, source: Source) -> None:
        """Record the change of a source, and mark all dependent values."""
        source.changed_at = self.revision
        if source.readers:
            self._mark(source)

    def keep(self, node: Derivation, dirty_set: dict[Derivation, None]) -> None:
        """Keep a derivation without readers; it is added to `dirty_set` whenever it may have changed."""
        node.dirty_set = dirty_set
        if node.stale:
            dirty_set[node] = None

    def let_go(self, node: Derivation) -> None:
        """Undo `keep`: a derivation without readers is dropped at the next change of an input."""
        if node.dirty_set is not None:
            node.dirty_set.pop(node, None)
        node.dirty_set = None
        if not node.readers:
            self._unread[node] = None

    def unread(self, node: Node) -> None:
        """Drop a node with the next change, unless read until then."""
        self._unread[node] = None

    def discard(self, node: Derivation) -> None:
        """Drop a derivation for good, with the reads needed by this derivation only."""
        self.let_go(node)
        for read in node.reads:
            self._unlink(read, node)
        node.reads = ()

    def answer(self, node: Derivation) -> Any:  # noqa: ANN401 - a graph has derivations of all types
        """Return the up-to-date value of a derivation, or raise its error; record the read."""
        with self.lock:
            try:
                if node.stale:
                    self.refresh(node)
            finally:
                # Recorded even after an error: a caller that catches the error must run again when the error
                # disappears. The thread with the lock owns the frames.
                if self._frames:
                    self._frames[-1][node] = None
                elif not node.readers:
                    self._unread[node] = None
            outcome = node.outcome
            if isinstance(outcome, RaisedError):
                self._raised[id(outcome.error)] = outcome.error
                raise outcome.error.with_traceback(None)
            return outcome

    def refresh(self, node: Derivation) -> None:
        """Bring a derivation up to date; raise CycleError if this derivation is being computed already."""
        if not node.stale:
            return
        if node in self._path:
            raise self._cycle(node)
        self._path[node] = None
        try:
            if node.verified_at and not self._reads_changed(node):
                self.reused += 1
                self._cycles.pop(node, None)  # the outcome is unchanged, including any cycle error in it
                node.level = _level(node.reads)
                node.verified_at = self.revision
            else:
                self._compute(node)
            node.stale = False
        finally:
            del self._path[node]

    def refresh_before(self, node: Derivation, level: int, stage: object) -> None:
        """Update the inputs of a stage; raise OrderError if they depend on this or a later stage.

        `stage` names the stage in the error.
        """
        self.refresh(node)
        if node.level >= level:
            raise OrderError(f"{stage}, stage {level}, cannot depend on stage {node.level}, as {node} does")

    def _mark(self, changed: Node) -> None:
        # Readers of a stale node are stale already, because a node becomes current only after its reads. So
        # the walk ends at stale nodes, and a burst of changes costs as much as one change.
        waiting = [changed]
        while waiting:
            for reader in waiting.pop().readers:
                if not reader.stale:
                    reader.stale = True
                    waiting.append(reader)
                    if reader.dirty_set is not None:
                        reader.dirty_set[reader] = None

    def _reads_changed(self, node: Derivation) -> bool:
        # In the order of the reads, because a later read may depend on the result of an earlier one. If the
        # earlier one has changed, the later read may not happen again: it must neither cost time nor raise.
        for read in node.reads:
            if isinstance(read, Derivation) and read.stale:
                if read in self._path:
                    return True  # a cycle so far; only a new computation shows whether it still exists
                self.refresh(read)
            # Within one revision a value is read only after its final update: equal numbers mean unchanged.
            if read.changed_at > node.verified_at:
                return True
        return False

    def _compute(self, node: Derivation) -> None:
        reads: dict[Node, None] = {}
        self._computing_in = get_ident()
        self._frames.append(reads)
        self.computed += 1
        outcome: object = None
        try:
            outcome = _reject_iterator(node, node.family.run(node.key))
        except (MemoryError, RecursionError):
            node.verified_at = 0  # not a property of the value: the next caller may have more memory or stack
            raise
        except Exception as raised:  # noqa: BLE001 - any error is an outcome
            outcome = RaisedError(raised)
        finally:
            self._frames.pop()
        # Even if the function has caught the error: its result would depend on where the cycle was entered.
        if (cycle := self._cycles.pop(node, None)) is not None:
            outcome = RaisedError(cycle)
        if isinstance(outcome, RaisedError):
            _drop_tracebacks(outcome.error)
        self._link(node, reads)
        if node.verified_at and node.outcome_is(outcome):
            self.stopped += 1  # keep the earlier of two equal values, because other values share it
        else:
            node.outcome = outcome
            node.changed_at = self.revision
        node.verified_at = self.revision

    def _link(self, node: Derivation, reads: dict[Node, None]) -> None:
        before, after = node.reads, tuple(reads)
        if after != before:
            node.reads = after
            for read in before:
                if read not in reads:
                    self._unlink(read, node)
            known = frozenset(before) if before else before
            for read in after:
                if read not in known:
                    read.read_by(node)
        node.level = _level(after)

    def _unlink(self, read: Node, reader: Derivation) -> None:
        read.left_by(reader)
        if not read.readers:
            self._unread[read] = None

    def _forget(self, node: Node) -> None:
        """Drop a node, unless another derivation reads the node or `keep` holds the node."""
        nodes = node.family.nodes
        if node.readers or node.dirty_set is not None or nodes.get(node.key) is not node:
            return  # read again meanwhile, or replaced by a new node, which must stay
        del nodes[node.key]
        if isinstance(node, Derivation):
            for read in node.reads:
                self._unlink(read, node)
        elif isinstance(node, Gate):
            self.let_go(node.behind)

    def _cycle(self, node: Derivation) -> CycleError:
        """Return the error of a cycle, recorded for all members because all must raise the same error."""
        path = list(self._path)
        members = path[path.index(node) :]
        names = [str(derivation) for derivation in members]
        first = names.index(min(names))
        names = names[first:] + names[:first]
        error = CycleError(" needs ".join([*names, names[0]]))
        for member in members:
            self._cycles[member] = error
        return error


def sources(node: Node) -> Iterator[Source]:
    """Yield each source behind a node once, in the order of reading.

    A value before the first computation has none. For example, the sources behind a proxy's policy are the
    objects on the proxy's page.
    """
    seen: set[Node] = set()
    waiting = [node]
    while waiting:
        item = waiting.pop()
        if item in seen:
            continue
        seen.add(item)
        if isinstance(item, Source):
            yield item
        waiting.extend(reversed(item.reads))


def _level(reads: Iterable[Node]) -> int:
    """Return the number of the latest stage among these nodes."""
    level = 0
    for read in reads:
        if read.level > level:
            level = read.level
    return level


def _reject_iterator(node: Derivation, value: object) -> object:
    if hasattr(
        value, "__next__"
    ):  # the test of the ABC Iterator, without the cost of an ABC check for each value
        raise TypeError(f"{node} returned an iterator, which can be read only once")
    return value


def _drop_tracebacks(error: BaseException | None) -> None:
    """Remove the tracebacks of a cached error, because they keep every local variable alive."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__
