"""Plugin of pytest: tests are collected once, and run in forks of the process that collected them.

    pytest -p tests.tools.forked_workers --forks 3 tests/unit

Each process of pytest-xdist imports and collects all tests, which takes 11 s of CPU time for the fast tests,
and sends six messages for each test, which take their receiver another 20 s. A fork has the imports and the
tests already, and sends the results of its share at once.

Tests are shared out in order, in shares of one file, at most SHARE tests at a time; who is done takes the
next share. A fork has a folder for temporary files of its own. What a passed test printed or logged is not
sent. A fork that ends early fails the test that it was running; the rest of its share does not run.
"""

import gc
import mmap
import os
import pickle
import struct
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

SHARE: Final = 32
"""Tests of one file that a fork takes at a time. Fixtures of a file start once for each share."""

_NUMBER: Final = struct.Struct("=i")
_NONE: Final = -1

Sent = tuple[int, str, float, float, float] | tuple[int, dict[str, Any]]
"""A report: of a passed phase the index of the test, phase, start, end and duration; else all of it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the number of forks."""
    parser.addoption("--forks", type=int, default=0, help="run the tests in so many forks of this process")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in forks, where `--forks` says so."""
    config = session.config
    if not config.option.forks or config.option.collectonly or session.testsfailed:
        return None
    Forks(session).run(config.option.forks)
    return True


def shares(items: Sequence[pytest.Item]) -> list[range]:
    """Return the indexes of tests that run one after the other in one process."""
    result: list[range] = []
    for index, item in enumerate(items):
        last = result[-1] if result else range(0)
        if last and len(last) < SHARE and items[last.start].path == item.path:
            result[-1] = range(last.start, index + 1)
        else:
            result.append(range(index, index + 1))
    return result


@dataclass(frozen=True, slots=True)
class Fork:
    """A running fork: its process, and where it notes the test that it runs."""

    process: int
    running: mmap.mmap

    def test(self) -> int:
        """Return the index of the running test, or -1."""
        return int(_NUMBER.unpack_from(self.running)[0])


class Forks:
    """The process that collected the tests, which reports the results of its forks."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._shares = shares(session.items)
        # A pipe holds more numbers than there are shares, and gives each of them to one reader.
        self._next, self._writing = os.pipe()
        for number in range(len(self._shares)):
            os.write(self._writing, _NUMBER.pack(number))
        self._forks: dict[Connection, Fork] = {}

    def run(self, count: int) -> None:
        """Run all tests in so many forks."""
        sys.stdout.flush()
        sys.stderr.flush()
        forks = [self._forked(number) for number in range(count)]
        os.close(self._writing)
        self._forks = dict(forks)
        try:
            while self._forks:
                for receiver in wait([*self._forks]):
                    assert isinstance(receiver, Connection)
                    self._receive(receiver)
                if self._session.shouldfail or self._session.shouldstop:
                    while os.read(self._next, 1 << 16):
                        pass  # the forks complete their shares and find no other
        finally:
            for fork in self._forks.values():
                os.kill(fork.process, 15)
                os.waitpid(fork.process, 0)
            os.close(self._next)
        for stop, reason in ((self._session.Failed, "shouldfail"), (self._session.Interrupted, "shouldstop")):
            if text := getattr(self._session, reason):
                raise stop(text)

    def _forked(self, number: int) -> tuple[Connection, Fork]:
        receiver, sender = Pipe(duplex=False)
        running = mmap.mmap(-1, _NUMBER.size)
        _NUMBER.pack_into(running, 0, _NONE)
        process = os.fork()
        if process == 0:
            receiver.close()
            os.close(self._writing)
            Worker(self._session, self._shares, self._next, sender, running).run(number)
        sender.close()
        return receiver, Fork(process, running)

    def _receive(self, receiver: Connection) -> None:
        try:
            sent: list[Sent] = pickle.loads(receiver.recv_bytes())  # noqa: S301 - from our own fork
        except EOFError:
            self._ended(self._forks.pop(receiver))
            return
        for item in sent:
            self._session.config.hook.pytest_runtest_logreport(report=self._report(item))

    def _report(self, sent: Sent) -> pytest.TestReport:
        test = self._session.items[sent[0]]
        if len(sent) == 2:
            config = test.config
            report = config.hook.pytest_report_from_serializable(config=config, data=sent[1])
            assert isinstance(report, pytest.TestReport)
            return report
        _, phase, start, stop, duration = sent
        return pytest.TestReport(
            test.nodeid,
            test.location,
            {},
            "passed",
            None,
            phase,  # type: ignore[arg-type]  # one of the three
            duration=duration,
            start=start,
            stop=stop,
        )

    def _ended(self, fork: Fork) -> None:
        status = os.waitstatus_to_exitcode(os.waitpid(fork.process, 0)[1])
        if status == 0:
            return
        test = self._session.items[max(fork.test(), 0)]
        text = f"the process that ran this test ended with status {status}; the rest of its share did not run"
        for phase in ("call", "teardown"):
            outcome = "failed" if phase == "call" else "passed"
            longrepr = text if phase == "call" else None
            report = pytest.TestReport(test.nodeid, test.location, {}, outcome, longrepr, phase)  # type: ignore[arg-type]
            self._session.config.hook.pytest_runtest_logreport(report=report)


class Worker:
    """A fork, which runs shares of the tests until none is left, and ends."""

    def __init__(
        self,
        session: pytest.Session,
        shares: Sequence[range],
        following: int,
        sender: Connection,
        running: mmap.mmap,
    ) -> None:
        self._session = session
        self._shares = shares
        self._next = following
        self._sender = sender
        self._running = running
        self._reports: list[Sent] = []
        self._failures = 0

    def run(self, number: int) -> None:
        """Run shares, and end the process: what follows the tests is for the first process alone."""
        status = 1
        try:
            self._prepare(number)
            self._run_all()
            status = 0
        finally:
            if status:
                traceback.print_exc(file=sys.__stderr__)
            os._exit(status)

    def _prepare(self, number: int) -> None:
        config = self._session.config
        manager = config.pluginmanager
        # Captured output goes to files, which must not be those of the other forks.
        capture = manager.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
        factory = config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = _folder(factory.getbasetemp(), number)
        manager.register(self)

    def _run_all(self) -> None:
        for share, index, following in self._order():
            items = self._session.items
            _NUMBER.pack_into(self._running, 0, index)
            item, nextitem = items[index], None if following is None else items[following]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            if index == share[-1]:
                self._send()
        gc.collect()  # an object that complains when it is freed shall do so

    def _order(self) -> Iterator[tuple[range, int, int | None]]:
        """Yield each test with its share, and the following test."""
        share = self._taken()
        while share is not None:
            for index in share[:-1]:
                yield share, index, index + 1
            following = self._taken()
            yield share, share[-1], None if following is None else following[0]
            share = following

    def _taken(self) -> range | None:
        most = self._session.config.option.maxfail
        if most and self._failures >= most:
            return None
        number = os.read(self._next, _NUMBER.size)
        return self._shares[_NUMBER.unpack(number)[0]] if number else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test, and keep its reports for the first process."""
        (index,) = _NUMBER.unpack_from(self._running)
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            self._failures += report.failed
            if report.passed and not report.user_properties:
                self._reports.append((index, report.when, report.start, report.stop, report.duration))
            else:
                data = item.config.hook.pytest_report_to_serializable(config=item.config, report=report)
                self._reports.append((index, data))
        return True

    def _send(self) -> None:
        self._sender.send_bytes(pickle.dumps(self._reports))
        self._reports = []


def _folder(base: Path, number: int) -> Path:
    folder = base / f"fork{number}"
    folder.mkdir(0o700)
    return folder
