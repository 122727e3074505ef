"""Tests of the demo's supervisor: start, death and end of processes, and the search for leftovers."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from demo import leftovers
from demo.leftovers import ProcessId, Record
from demo.supervisor import DemoError, Supervisor, run
from tests.tools.deadline import HANG_SECONDS

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal as s, time; s.signal(s.SIGTERM, s.SIG_IGN); print('up', flush=True); time.sleep(60)",
]


def _gone(process: ProcessId) -> bool:
    limit = time.monotonic() + 60
    while process.is_alive() and time.monotonic() < limit:
        time.sleep(0.01)
    return not process.is_alive()


async def test_killed_child_is_an_error_and_ends_the_other_children(tmp_path: Path) -> None:
    """The error names the killed process, and the end of the supervisor ends the other one."""
    with pytest.raises(DemoError, match="second ended with status -9"):
        async with Supervisor(tmp_path) as supervisor:
            first = await supervisor.start("first", SLEEP, tmp_path / "first.log")
            second = await supervisor.start("second", SLEEP, tmp_path / "second.log")
            kept = ProcessId.read(first.pid)
            os.kill(second.pid, signal.SIGKILL)
            await supervisor.until("never", lambda: False, deadline=60)
    assert kept is not None
    assert not kept.is_alive()
    assert leftovers.find(tmp_path) == ()


async def test_child_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL follows after the deadline."""
    monkeypatch.setattr("demo.supervisor.STOP_SECONDS", 0.2)
    async with Supervisor(tmp_path) as supervisor:
        stubborn = await supervisor.start("stubborn", STUBBORN, tmp_path / "log")
        await supervisor.until("it is up", lambda: stubborn.tail() == "up\n")
        identity = ProcessId.read(stubborn.pid)
    assert identity is not None
    assert not identity.is_alive()


async def test_wait_fails_at_its_deadline(tmp_path: Path) -> None:
    """The error names the condition that was not met."""
    async with Supervisor(tmp_path) as supervisor:
        with pytest.raises(DemoError, match="did not happen within 0 s: the moon"):
            await supervisor.until("the moon", lambda: False, deadline=0.05)


async def test_failed_command_is_reported_with_status_and_standard_error() -> None:
    """The error has the status and standard error. A successful command returns its output."""
    with pytest.raises(DemoError, match=r"status 3.*\n.*no such thing"):
        await run(["sh", "-c", "echo no such thing >&2; exit 3"])
    assert await run(["cat"], stdin="text") == "text"


def test_children_die_with_a_killed_supervisor(tmp_path: Path) -> None:
    """SIGKILL of the supervisor also ends its children, so no process is left."""
    program = textwrap.dedent(
        f"""
        import asyncio, os, pathlib
        from demo.supervisor import Supervisor

        async def main():
            supervisor = Supervisor(pathlib.Path({str(tmp_path)!r}))
            child = await supervisor.start("child", {STUBBORN!r}, pathlib.Path({str(tmp_path / "log")!r}))
            while not child.tail():  # until then it may not be bound to us yet
                await asyncio.sleep(0.01)
            print(child.pid, flush=True)
            await asyncio.sleep(60)

        asyncio.run(main())
        """
    )
    root = str(Path(leftovers.__file__).parent.parent)
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    ) as demo:
        assert demo.stdout is not None
        child = ProcessId.read(int(demo.stdout.readline()))
        assert child is not None
        assert Record.load(tmp_path).processes == {child}
        demo.kill()
    assert _gone(child)


async def test_recorded_leftover_process_is_found_and_removed(tmp_path: Path) -> None:
    """A process of the record that still runs is named, then ended. A second removal is no error."""
    process = await asyncio.create_subprocess_exec(*SLEEP)
    identity = ProcessId.read(process.pid)
    assert identity is not None
    record = Record.load(tmp_path)
    record.processes.add(identity)
    record.save()
    assert leftovers.find(tmp_path) == (f"process {process.pid}, started by the demo",)
    remover = asyncio.to_thread(leftovers.remove, tmp_path)
    await asyncio.gather(remover, process.wait())
    leftovers.remove(tmp_path)
    assert leftovers.find(tmp_path) == ()


async def test_unrecorded_process_is_found_by_its_environment(tmp_path: Path) -> None:
    """A process without a record is found by its mark. An editor with an open manifest has no mark."""
    editor = await asyncio.create_subprocess_exec(*SLEEP, str(tmp_path / "mesh" / "split.yaml"))
    assert leftovers.find(tmp_path) == ()
    editor.kill()
    await editor.wait()
    environment = {**os.environ, **leftovers.mark(tmp_path)}
    process = await asyncio.create_subprocess_exec(*SLEEP, env=environment)
    try:
        assert any(f"process {process.pid}:" in line for line in leftovers.find(tmp_path))
    finally:
        process.kill()
        await process.wait()
    assert leftovers.find(tmp_path) == ()


def test_process_with_a_reused_id_is_not_a_leftover(tmp_path: Path) -> None:
    """A record is also matched by start time, so another process with the same id is never ended."""
    me = ProcessId.read(os.getpid())
    assert me is not None
    stranger = ProcessId(me.pid, me.start + 1)
    record = Record.load(tmp_path)
    record.processes.add(stranger)
    record.save()
    assert leftovers.find(tmp_path) == ()
    leftovers.remove(tmp_path)


def test_record_of_an_earlier_boot_is_ignored(tmp_path: Path) -> None:
    """Process ids and start times are invalid after a restart of the machine."""
    record = Record(tmp_path, "another boot", {ProcessId(1, 1)}, {"mwdemo1"})
    record.save()
    assert Record.load(tmp_path).processes == set()


def _written(path: Path) -> int:
    limit = time.monotonic() + 30
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < limit
        time.sleep(0.01)
    return int(path.read_text())


async def test_command_cancelled_during_its_start_leaves_no_process(tmp_path: Path) -> None:
    """The command has already started a child when the cancellation arrives before the first look."""
    pid = tmp_path / "pid"
    task = asyncio.create_task(run(["sh", "-c", f"sleep 61 & echo $! > {pid}; sleep 61"], deadline=60))
    for _ in range(2):  # exactly until the process has been started
        await asyncio.sleep(0)
    started = ProcessId.read(_written(pid))
    assert task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(30):
            await task
    assert started is not None
    assert _gone(started)


def test_commands_ended_by_a_signal_leave_no_process_and_print_nothing(tmp_path: Path) -> None:
    """SIGINT ends six commands whose children hold their pipes, without output of asyncio."""
    program = """
        import asyncio, contextlib
        from demo.kubernetes.__main__ import until_signal
        from demo.supervisor import run

        async def work():
            began = (run(["sh", "-c", "sleep 61 & echo $! >> pids; sleep 61"], deadline=60) for _ in range(6))
            await asyncio.gather(*began)

        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(until_signal(work))
        print("ended")
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    pids, limit = tmp_path / "pids", time.monotonic() + 60
    while not pids.exists() or len(pids.read_text().split()) < 6:
        assert time.monotonic() < limit
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANG_SECONDS)
    assert (out, err, process.returncode) == (b"ended\n", b"", 0)
    started = [ProcessId.read(int(item)) for item in pids.read_text().split()]
    assert all(_gone(process_id) for process_id in started if process_id is not None)
