"""Tests of commands in subprocesses: results, ends, and that no process is left."""

import asyncio
import gc
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from meshwright.processes.command import Command, CommandResult, run
from tests.tools.child_processes import children, gone
from tests.tools.deadline import until

SHELL = ("sh", "-c")


def shell(text: str, given: bytes | None = None) -> Command:
    """Return a command of a shell."""
    return Command((*SHELL, text), stdin=given)


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        (shell("echo out; echo bad >&2"), CommandResult(0, b"out\n", b"bad\n")),
        (shell("exit 3"), CommandResult(3, b"", b"")),
        (shell("kill -TERM $$"), CommandResult(-15, b"", b"")),
        (shell("cat", given=b"text"), CommandResult(0, b"text", b"")),
        (shell("cat", given=b""), CommandResult(0, b"", b"")),
        (shell("cat"), CommandResult(0, b"", b"")),
        (shell("exit 0", given=b"nobody reads it" * 100_000), CommandResult(0, b"", b"")),
        (
            Command((*SHELL, "echo a; echo b >&2; echo c"), merged=True),
            CommandResult(0, b"a\nb\nc\n", b""),
        ),
        (
            Command((*SHELL, "echo $A"), environment={"A": "b", "PATH": os.environ["PATH"]}),
            CommandResult(0, b"b\n", b""),
        ),
        (Command(("pwd",), folder=Path("/usr")), CommandResult(0, b"/usr\n", b"")),
    ],
)
async def test_command_returns_its_status_output_and_errors(command: Command, wanted: CommandResult) -> None:
    """Status, standard output and standard error are those of the shell."""
    assert await run(command, 60) == wanted


async def test_large_input_is_passed_through_completely() -> None:
    """5 MB are more than a pipe holds, in both directions."""
    given = os.urandom(5_000_000)
    assert await run(Command(("cat",), stdin=given), 60) == CommandResult(0, given, b"")


async def test_output_above_the_limit_is_read_and_discarded() -> None:
    """A command with too much output ends like others, because the rest is read."""
    command_result = await run(
        Command((*SHELL, "head -c 5000000 /dev/zero; echo e >&2"), most_bytes=1000), 60
    )
    assert command_result == CommandResult(0, bytes(1000), b"e\n")


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (None, FileNotFoundError),
        (0o644, PermissionError),
        (0o755, OSError),  # not a program: ENOEXEC
    ],
)
async def test_command_that_cannot_be_run_raises_the_systems_error(
    tmp_path: Path, made: int | None, wrong: type[OSError]
) -> None:
    """A missing file, a missing permission and an invalid program raise an `OSError`."""
    program = tmp_path / "program"
    if made is not None:
        program.write_bytes(b"\0")
        program.chmod(made)
    with pytest.raises(wrong) as raised:
        await run(Command((str(program),), stdin=b"text"), 60)
    assert not isinstance(raised.value, TimeoutError)


def test_input_output_and_environment_are_not_in_the_repr() -> None:
    """Keys and tokens pass through commands."""
    command = Command(("cat",), environment={"TOKEN": "secret"}, stdin=b"secret")
    assert "secret" not in repr(command)
    assert "secret" not in repr(CommandResult(0, b"secret", b"secret"))


# Processes that a command has started in its session, and that hold its pipes.
STARTED = {
    "itself": "{noted}; exec sleep 1000",
    "child": "sleep 1000 & {noted}; wait",
    "daemon": "sleep 1000 & {noted}",
    "stubborn": "trap '' TERM HUP INT; sleep 1000 & {noted}; while :; do wait; sleep 1; done",
}


@pytest.mark.parametrize("started", STARTED)
async def test_timeout_leaves_no_process(tmp_path: Path, started: str) -> None:
    """No process is left after the timeout, not even a child that holds the pipes of an ended command."""
    pid = tmp_path / "pid"
    command = shell(_noting(pid, STARTED[started]), given=b"")
    for seconds in (0.5, 5.0, 30.0):  # a busy machine may not have begun the shell by the first deadline
        with pytest.raises(TimeoutError):
            await run(command, seconds)
        if pid.exists():
            break
    await gone(int(pid.read_text()))


@pytest.mark.parametrize("started", STARTED)
async def test_cancelled_command_leaves_no_process(tmp_path: Path, started: str) -> None:
    """No pipe is left to complain at its collection either."""
    pid = tmp_path / "pid"
    running = asyncio.create_task(run(shell(_noting(pid, STARTED[started])), 60))
    await until(pid.exists)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    await gone(int(pid.read_text()))
    del running
    gc.collect()


@pytest.mark.parametrize("steps", range(8))
async def test_command_cancelled_during_its_start_leaves_no_process(tmp_path: Path, steps: int) -> None:
    """The cancellation comes at each step of the start, also before the event loop knows the process."""
    pid, before = tmp_path / "pid", children()  # from other tests' pools
    running = asyncio.create_task(run(shell(_noting(pid, STARTED["child"])), 60))
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    if pid.exists():
        await gone(int(pid.read_text()))
    assert children() <= before
    gc.collect()


async def test_command_that_cannot_start_can_be_cancelled(tmp_path: Path) -> None:
    """The error of the start is discarded without a warning."""
    running = asyncio.create_task(run(Command((str(tmp_path / "none"),)), 60))
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    del running
    gc.collect()


async def test_many_cancelled_commands_log_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The asyncio library logs a warning if another caller has waited for its process."""
    pids = [tmp_path / str(number) for number in range(12)]
    running = [asyncio.create_task(run(shell(_noting(pid, STARTED["child"])), 60)) for pid in pids]
    await until(lambda: all(pid.exists() for pid in pids))
    for task in running:
        task.cancel()
    await asyncio.wait(running)
    for pid in pids:
        await gone(int(pid.read_text()))
    assert [record.getMessage() for record in caplog.records] == []


async def test_process_in_another_session_is_not_waited_for(tmp_path: Path) -> None:
    """A process that has left the command's session is a daemon, so its pipes are only closed on our side."""
    pid = tmp_path / "pid"
    leaving = (
        f"import os, time; os.setsid(); open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    )
    command = shell(f'{sys.executable} -c "{leaving}" & while [ ! -s {pid} ]; do sleep 0.05; done; wait')
    running = asyncio.create_task(run(command, 60))
    await until(lambda: pid.exists() and bool(pid.read_text()))
    try:
        running.cancel()
        async with asyncio.timeout(30):
            await asyncio.wait([running])
        assert running.cancelled()
    finally:
        os.kill(int(pid.read_text()), 9)


async def _by_asyncio(command: Command) -> None:
    """Run a command as in asyncio's documentation."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command.argv, stdout=pipe)
    try:
        async with asyncio.timeout(0.1):
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()


async def _ours(command: Command) -> None:
    with pytest.raises(TimeoutError):
        await run(command, 0.5)


@pytest.mark.parametrize(("way", "over"), [(_by_asyncio, False), (_ours, True)])
async def test_asyncio_alone_waits_for_children_that_hold_the_pipes(
    tmp_path: Path, way: Callable[[Command], Coroutine[object, object, None]], over: bool
) -> None:
    """`communicate` of asyncio waits for a child that holds the pipes, so `run` is implemented without it."""
    pid = tmp_path / "pid"
    running = asyncio.create_task(way(shell(_noting(pid, STARTED["child"]))))
    await until(pid.exists)
    done, _ = await asyncio.wait([running], timeout=0.5 if not over else 30)
    assert bool(done) is over
    if not over:
        os.kill(int(pid.read_text()), 9)
        await running


def _noting(pid: Path, text: str) -> str:
    """Return a shell script that writes the pid of its child, or its own, in one step."""
    who = "$$" if "exec" in text else "$!"
    return text.format(noted=f"echo {who} > {pid}.new; mv {pid}.new {pid}")
