"""Tests of a state directory that is unwritable or wrong for reasons other than a full disk."""

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
    """A file system that can fail."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("a file system that fails is made by mkfs.ext4")
    with volume(image=tmp_path / "image") as made:
        yield made


def test_ledger_locked_by_another_process_refuses_no_proxy(used: Program) -> None:
    """A first connection is kept in memory and reported, then written when the lock is released."""
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


def test_state_directory_removed_at_run_time_is_reported(used: Program) -> None:
    """Configuration in memory is still served, and the message has the remedy."""
    server = used.serve()
    used.state.rename(used.state.with_name("elsewhere"))
    server.until(lambda: failing(server))
    (answer,) = server.said(TROUBLE)
    assert answer["reason"] == (
        f"{used.state} was removed or replaced after the start: restore it and restart the server"
    )
    assert used.served(server, "one")
    assert server.get("/healthz/ready")[0] == 200


def test_known_proxies_are_admitted_while_the_ledger_cannot_be_read(used: Program) -> None:
    """Certificates known at the start are accepted. A certificate issued later is accepted after the lock."""
    server = used.serve()
    used.issued("two")
    other = sqlite3.connect(used.state / "ledger.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert used.served(server, "one")
    assert not used.served(server, "two")
    other.execute("ROLLBACK")
    other.close()
    assert used.served(server, "two")


def test_read_only_file_system_keeps_revocations_until_the_restart(
    device: Volume, tmp_path: Path, typed: Typed
) -> None:
    """The server enforces the revocation and warns that it is not stored. A restart is refused."""
    program = Program(device.inside / "state", tmp_path, device.commands(typed))
    try:
        one, *_ = program.issued(*PROXIES)
        server = program.serve()
        device.fail()
        server.until(lambda: failing(server))
        (answer,) = server.said(TROUBLE)
        assert answer["reason"].endswith("cannot be written: Read-only file system")
        assert program.served(server, "one")
        status, out, complaint = program.revoke(one)
        assert (status, out) == (2, "")
        assert complaint.startswith(f"ledger {program.state}/ledger.sqlite cannot be written (")
        assert complaint.endswith(
            f"): the revocation of {one} is not stored; the revocation is in force in "
            "this server, which tries again to write it; if the server stops before that, the revocation "
            "is lost"
        )
        assert [program.served(server, proxy) for proxy in PROXIES] == [False, True, True]
        server.stop()
        assert program.refused().endswith("is not writable: Read-only file system")
    finally:
        program.end()


def test_clock_behind_the_newest_certificate_is_reported(program: Program) -> None:
    """A ledger with a certificate from tomorrow causes the message. A present one does not."""
    program.issued("one")
    server = program.serve()
    text = "clock is behind the last issued proxy certificate; correct the clock"
    assert server.said(text) == []
    server.stop()
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    connection = sqlite3.connect(program.state / "ledger.sqlite")
    connection.execute("UPDATE proxy_certificates SET issued_at = ?", (int(tomorrow.timestamp()),))
    connection.commit()
    connection.close()
    (line,) = program.serve().said(text)
    assert line["issued"] == tomorrow.replace(microsecond=0).isoformat()


def test_too_long_socket_path_is_refused(program: Program) -> None:
    """The start is refused with the limit of 107 bytes."""
    program.state = program.state / ("x" * 100)
    assert program.refused() == (
        f"the socket path {program.state}/meshwright.sock is longer than 107 bytes: "
        "use a shorter state directory"
    )
