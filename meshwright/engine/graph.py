"""The graph: who read what, what a change concerns, and how a value is brought up to date.

A change happens in stages. First the inputs are written, and with them the indexes over them. Then, in the
order in which they were made, the indexes over derived values and the firewalls are brought up to date: they
know their own changes at once, so that only readers of what really changed are marked. All other derived
values are merely marked, and computed when somebody asks. A stage may depend on earlier ones only.
"""

import itertools
import threading
from collections.abc import Iterable, Iterator
from threading import get_ident
from typing import Any, Protocol

from meshwright.engine.errors import BusyError, CycleError, OrderError
from meshwright.engine.node import Derivation, Function, Gate, Node, RaisedError, Source


class Edit(Protocol):
    """One input to be written."""

    def __call__(self) -> None:
        """Write it."""


class Stage(Protocol):
    """Something that is brought up to date with every change."""

    def settle(self) -> None:
        """Come up to date, and mark what read that which changed."""


class Graph:
    """Remembers derived values, and what each of them read.

    One thread changes it; others may ask for values, one at a time, and see each before or after a change.

    `computed` counts the functions run, `stopped` those of them that came to what was there before, and
    `reused` the values that were in doubt and needed no run.
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
        """Forget what is wanted no more, and write inputs as one change.

        Raises BusyError from within a computation.
        """
        with self.lock:
            self.collect()
            self.revision += 1
            for edit in edits:
                edit()
            self.settle()

    def settle(self) -> None:
        """Bring every stage up to date, in order; who makes a stage after the last change asks for it."""
        for stage in self._stages:
            stage.settle()

    def collect(self, most: int | None = None) -> bool:
        """Forget what nobody reads or keeps, and what only that had read; say whether anything is left.

        At most `most` values, else all: who has much to forget may do so in parts before a change. Raises
        BusyError from within a computation, whose reads are not known yet.
        """
        with self.lock:
            if self._path:
                raise BusyError(f"inputs cannot change while {next(reversed(self._path))} is computed")
            while self._raised:
                _bare(self._raised.popitem()[1])
            for _ in itertools.count() if most is None else range(most):
                if not self._unread:
                    break
                self._forget(self._unread.popitem()[0])
            return bool(self._unread)

    @property
    def computing(self) -> bool:
        """Say whether the asking thread is computing something, so that its reads matter."""
        return self.reads() is not None

    def reads(self) -> dict[Node, None] | None:
        """Return where it is noted what the asking thread reads; None where it computes nothing."""
        # A thread that begins to compute says so before it has a frame: nobody takes another's for its own.
        frames = self._frames
        return frames[-1] if frames and self._computing_in == get_ident() else None

    def families(self, function: object) -> dict[object, Function]:
        """Return what is remembered of one function, by where it reads."""
        found = self._families.get(function)
        if found is None:
            found = self._families[function] = {}
        return found

    def size(self) -> int:
        """Return how many derived values are remembered."""
        return sum(len(each.nodes) for families in self._families.values() for each in families.values())

    def add_stage(self, stage: Stage) -> int:
        """Take a stage in after all others; return its number, which is the level of its nodes."""
        self._stages.append(stage)
        return len(self._stages)

    def record(self, node: Node) -> None:
        """Note that whatever is being computed has read a node."""
        if (reads := self.reads()) is not None:
            reads[node] = None  # a dictionary for its order: see _reads_changed

    def changed(self, source: Source) -> None:
        """Note that a source has changed: mark all that depends on it."""
        source.changed_at = self.revision
        if source.readers:
            self._mark(source)

    def keep(self, node: Derivation, dirty_set: dict[Derivation, None]) -> None:
        """Keep a derivation although nobody reads it; say in `dirty_set` when it may have changed."""
        node.dirty_set = dirty_set
        if node.stale:
            dirty_set[node] = None

    def let_go(self, node: Derivation) -> None:
        """Undo `keep`."""
        if node.dirty_set is not None:
            node.dirty_set.pop(node, None)
        node.dirty_set = None
        if not node.readers:
            self._unread[node] = None

    def unread(self, node: Node) -> None:
        """Have a node forgotten with the next change, unless somebody reads it by then."""
        self._unread[node] = None

    def discard(self, node: Derivation) -> None:
        """Forget a derivation that will never be asked for again, and what only it had read."""
        self.let_go(node)
        for read in node.reads:
            self._unlink(read, node)
        node.reads = ()

    def answer(self, node: Derivation) -> Any:  # noqa: ANN401 - derivations of all types stand in one graph
        """Return a derivation's value, or raise its error, up to date; a read by what is being computed."""
        with self.lock:
            try:
                if node.stale:
                    self.refresh(node)
            finally:
                # A read even where it raised: who catches the error is to run again when it ends. Whoever has
                # the lock computes what is being computed.
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
        """Bring a derivation up to date; raise CycleError if it is just being computed."""
        if not node.stale:
            return
        if node in self._path:
            raise self._cycle(node)
        self._path[node] = None
        try:
            if node.verified_at and not self._reads_changed(node):
                self.reused += 1
                self._cycles.pop(node, None)  # its outcome stands, and so does whatever cycle is in it
                node.level = _level(node.reads)
                node.verified_at = self.revision
            else:
                self._compute(node)
            node.stale = False
        finally:
            del self._path[node]

    def refresh_before(self, node: Derivation, level: int, stage: object) -> None:
        """Bring up to date what a stage is made of; raise OrderError if it needs that or a later stage.

        `stage` says in the error which one it is: its name, or what is behind it.
        """
        self.refresh(node)
        if node.level >= level:
            raise OrderError(f"{stage}, stage {level}, cannot depend on stage {node.level}, as {node} does")

    def _mark(self, changed: Node) -> None:
        # What is stale has stale readers only, for who comes up to date has its reads do so first. So the
        # walk may end there, and a burst of changes costs one.
        waiting = [changed]
        while waiting:
            for reader in waiting.pop().readers:
                if not reader.stale:
                    reader.stale = True
                    waiting.append(reader)
                    if reader.dirty_set is not None:
                        reader.dirty_set[reader] = None

    def _reads_changed(self, node: Derivation) -> bool:
        # In the order of reading: what was read later may have been read because of what was read before.
        # When that is another one, the later read may be nobody's any more: it must neither cost nor raise.
        for read in node.reads:
            if isinstance(read, Derivation) and read.stale:
                if read in self._path:
                    return True  # round a cycle: whether it still is one is found out by computing alone
                self.refresh(read)
            # In one revision a value is read only when it is what it will be: equal numbers are no change.
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
            outcome = _checked(node, node.family.run(node.key))
        except (MemoryError, RecursionError):
            node.verified_at = 0  # says nothing of the value: whoever asks next may have more room
            raise
        except Exception as raised:  # noqa: BLE001 - an error is an outcome, whichever it is
            outcome = RaisedError(raised)
        finally:
            self._frames.pop()
        # Even if the function has caught the error: what it made of it hangs on where the cycle was entered.
        if (cycle := self._cycles.pop(node, None)) is not None:
            outcome = RaisedError(cycle)
        if isinstance(outcome, RaisedError):
            _bare(outcome.error)
        self._link(node, reads)
        if node.verified_at and node.outcome_is(outcome):
            self.stopped += 1  # the earlier of two equal values stays: what was made of it goes on sharing it
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
        """Forget a node, unless somebody reads or keeps it."""
        nodes = node.family.nodes
        if node.readers or node.dirty_set is not None or nodes.get(node.key) is not node:
            return  # read again since; or another one stands in its place, which it must not take along
        del nodes[node.key]
        if isinstance(node, Derivation):
            for read in node.reads:
                self._unlink(read, node)
        elif isinstance(node, Gate):
            self.let_go(node.behind)

    def _cycle(self, node: Derivation) -> CycleError:
        """Return the error of a cycle, having told each of its members: none may answer another way."""
        path = list(self._path)
        members = path[path.index(node) :]
        names = [str(each) for each in members]
        first = names.index(min(names))
        names = names[first:] + names[:first]
        error = CycleError(" needs ".join([*names, names[0]]))
        for member in members:
            self._cycles[member] = error
        return error


def sources(node: Node) -> Iterator[Source]:
    """Yield each source behind a node once, in the order of reading; values not asked for yet have none."""
    seen: set[Node] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        if isinstance(each, Source):
            yield each
        waiting.extend(reversed(each.reads))


def _level(reads: Iterable[Node]) -> int:
    """Return the latest stage of what was read."""
    level = 0
    for read in reads:
        if read.level > level:
            level = read.level
    return level


def _checked(node: Derivation, value: object) -> object:
    if hasattr(value, "__next__"):  # as Iterator has it, without asking an ABC about each value
        raise TypeError(f"{node} returned an iterator, which can be read only once")
    return value


def _bare(error: BaseException | None) -> None:
    """Drop the tracebacks of an error that is to be remembered: they hold on to every local variable."""
    while error is not None:
        error.__traceback__ = None
        error = error.__context__
