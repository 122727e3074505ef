"""A state directory that cannot be written for other reasons than a full disk."""

import datetime
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.feature.state.test_full_disk import REMEMBERED, TROUBLE, failing, listed
from tests.tools.forked_cli import Typed
from tests.tools.program import PROXIES, Program
from tests.tools.volumes import Volume, volume


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Volume]:
    """Return a file system that can fail."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("a file system that fails is made by mkfs.ext4")
    with volume(image=tmp_path / "image") as made:
        yield made


def test_a_ledger_that_others_lock_keeps_nobody_out(used: Program) -> None:
    """A first connection is remembered and said, and written when the lock is gone."""
    server = used.serve()
    other = sqlite3.connect(used.state / "ledger.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert used.served(server, "one")
    server.until(lambda: failing(server) and server.metric("meshwright_ledger_unwritten") == 1)
    assert server.get("/healthz/ready")[1].endswith(f"; {REMEMBERED.format(1)}\n")
    other.execute("ROLLBACK")
    other.close()
    server.until(lambda: listed(used)["one"] == "claimed admitted")
    server.until(lambda: not failing(server))
    assert server.metric("meshwright_ledger_unwritten") == 0


def test_a_state_directory_that_goes_while_it_runs_is_said(used: Program) -> None:
    """What is in memory is served on; the sentence says what to do."""
    server = used.serve()
    used.state.rename(used.state.with_name("elsewhere"))
    server.until(lambda: failing(server))
    (said,) = server.said(TROUBLE)
    assert said["reason"] == (
        f"{used.state} was removed or replaced after the start: restore it and restart the server"
    )
    assert used.served(server, "one")
    assert server.get("/healthz/ready")[0] == 200


def test_who_was_here_is_let_in_while_others_lock_even_reading(used: Program) -> None:
    """As the ledger had them at the start; whoever has a certificate since then, once the lock is gone."""
    server = used.serve()
    used.issued("two")
    other = sqlite3.connect(used.state / "ledger.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert used.served(server, "one")
    assert not used.served(server, "two")
    other.execute("ROLLBACK")
    other.close()
    assert used.served(server, "two")


def test_a_file_system_that_turns_read_only(device: Volume, tmp_path: Path, typed: Typed) -> None:
    """The mesh goes on; who revokes is told that it holds until a restart, and that is refused."""
    program = Program(device.inside / "state", tmp_path, device.commands(typed))
    try:
        one, *_ = program.issued(*PROXIES)
        server = program.serve()
        device.fail()
        server.until(lambda: failing(server))
        (said,) = server.said(TROUBLE)
        assert said["reason"].endswith("cannot be written: Read-only file system")
        assert program.served(server, "one")
        status, out, complaint = program.revoke(one)
        assert (status, out) == (2, "")
        assert complaint.startswith(f"ledger {program.state}/ledger.sqlite cannot be written (")
        assert complaint.endswith(
            f"): the revocation of {one} is not stored; the revocation is in force in "
            "this server, which tries again to write it; if the server stops before that, the revocation "
            "is lost"
        )
        assert [program.served(server, each) for each in PROXIES] == [False, True, True]
        server.stop()
        assert program.refused().endswith("is not writable: Read-only file system")
    finally:
        program.end()


def test_a_clock_that_is_behind_is_said(program: Program) -> None:
    """By the newest certificate; one of now is the negative control."""
    program.issued("one")
    server = program.serve()
    said = "clock is behind the last issued proxy certificate; correct the clock"
    assert server.said(said) == []
    server.stop()
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    connection = sqlite3.connect(program.state / "ledger.sqlite")
    connection.execute("UPDATE proxy_certificates SET issued_at = ?", (int(tomorrow.timestamp()),))
    connection.commit()
    connection.close()
    (line,) = program.serve().said(said)
    assert line["issued"] == tomorrow.replace(microsecond=0).isoformat()


def test_a_socket_s_path_that_is_too_long_is_said(program: Program) -> None:
    """Before anybody is served."""
    program.state = program.state / ("x" * 100)
    assert program.refused() == (
        f"the socket path {program.state}/meshwright.sock is longer than 107 bytes: "
        "use a shorter state directory"
    )
