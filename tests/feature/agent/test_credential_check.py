"""Tests of the subprocess that checks a proxy's credentials: results, failures, and secrecy of the key."""

import asyncio
import sys
from pathlib import Path

import pytest

from meshwright.agent.certificates import read
from meshwright.agent.credential_check import read as read_apart
from meshwright.agent.credentials import CredentialsError
from meshwright.agent.subprocess_call import ApartFailed, command
from tests.tools.child_processes import children
from tests.unit.agent.issued_credentials import write_credentials


async def test_subprocess_reads_the_same_credentials_as_an_in_process_read(tmp_path: Path) -> None:
    """The subprocess returns the same certificate and the same digest as a read in this process."""
    write_credentials(tmp_path, tmp_path / "out")
    here, apart = read(tmp_path / "out"), await read_apart(tmp_path / "out")
    assert (apart.shows, apart.digest) == (here.shows, here.digest)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("proxy.key", None),
        ("proxy.key", "other"),
        ("proxy.key", ""),
        ("proxy.pem", ""),
        ("ca.pem", ""),
        ("ca.pem", "proxy.pem"),
        ("ca.pem", "mode"),
    ],
)
async def test_subprocess_reports_invalid_credentials_with_the_same_message(
    tmp_path: Path, file: str, content: str | None
) -> None:
    """The error text of each invalid or missing file is the same as that of a read in this process."""
    out = tmp_path / "out"
    write_credentials(tmp_path, out)
    write_credentials(tmp_path, tmp_path / "other")
    match content:
        case None:
            (out / file).unlink()
        case "mode":
            (out / file).chmod(0o666)
        case "other":
            (out / file).write_bytes((tmp_path / content / file).read_bytes())
        case _:
            (out / file).write_bytes((out / content).read_bytes() if content else b"")
    with pytest.raises(CredentialsError) as here:
        read(out)
    with pytest.raises(CredentialsError) as apart:
        await read_apart(out)
    assert str(apart.value) == str(here.value)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import sys; sys.exit('no memory')", "ended with status 1: no memory"),
        ("import os; os.kill(os.getpid(), 9)", "ended with status -9: "),
        ("raise ValueError('what')", "ended with status 1: ValueError: what"),
        ("print('hello')", r"returned an answer that cannot be read \(6 bytes\)"),
        ("import pickle, sys; pickle.dump(7, sys.stdout.buffer)", "returned a int"),
        ("import time; time.sleep(3600)", "took more than 0.5 s"),
    ],
)
async def test_failed_subprocess_is_reported_without_blaming_the_credentials(
    tmp_path: Path, script: str, words: str
) -> None:
    """A subprocess that crashes, hangs or prints an invalid answer is an `ApartFailed`, and ends."""
    write_credentials(tmp_path, tmp_path / "out")
    before = children()  # started by other tests' fixtures
    seconds = 0.5 if "sleep" in script else 60
    with pytest.raises(ApartFailed, match=f"^the subprocess that reads certificates {words}") as failed:
        await read_apart(tmp_path / "out", program=[sys.executable, "-I", "-c", script], seconds=seconds)
    assert not isinstance(failed.value, CredentialsError)
    assert children() <= before


async def test_subprocess_that_cannot_start_is_reported(tmp_path: Path) -> None:
    """A program that cannot be run is an `ApartFailed` with the system's reason."""
    write_credentials(tmp_path, tmp_path / "out")
    with pytest.raises(ApartFailed, match=r"cannot run .*: No such file or directory"):
        await read_apart(tmp_path / "out", program=[str(tmp_path / "none")])


async def test_subprocess_ends_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    """A cancelled read leaves no subprocess, because an agent may be stopped while it checks credentials."""
    write_credentials(tmp_path, tmp_path / "out")
    before = children()
    sleeping = [sys.executable, "-I", "-c", "import time; time.sleep(3600)"]
    asking = asyncio.create_task(read_apart(tmp_path / "out", program=sleeping))
    async with asyncio.timeout(60):
        while children() <= before:
            await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
    assert children() <= before


async def test_private_key_is_passed_on_standard_input_only(tmp_path: Path) -> None:
    """The key is not in the arguments, the environment or the error, because other users can read those."""
    write_credentials(tmp_path, tmp_path / "out")
    key = (tmp_path / "out" / "proxy.key").read_bytes().splitlines()[1]
    seen = tmp_path / "seen"
    shows = f"cat /proc/self/cmdline /proc/$$/cmdline /proc/$$/environ > {seen}; cat > {seen}.in; exit 3"
    with pytest.raises(ApartFailed) as failed:
        await read_apart(tmp_path / "out", program=["sh", "-c", shows])
    assert key in (tmp_path / "seen.in").read_bytes()
    assert key not in seen.read_bytes()
    assert key.decode() not in str(failed.value)
    assert not any(key.decode() in word for word in command("meshwright.agent.credential_check_main"))
