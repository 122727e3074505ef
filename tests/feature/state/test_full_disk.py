"""Tests of a state directory on a full file system: service, messages, and recovery."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tools.forked_cli import ROOT, Typed
from tests.tools.program import PROXIES, Program, Server
from tests.tools.volumes import Volume, volume

FULL = "No space left on device"
REMEMBERED = "valid configuration and certificates are still served, changes of {} proxies wait to be written"
SERVICE = ("--service", "store", "--namespace", "shop")
TROUBLE = "state directory cannot be written; valid configuration and certificates are still served"


@pytest.fixture
def disk() -> Iterator[Volume]:
    """A file system of 4 MiB."""
    with volume() as made:
        yield made


@pytest.fixture
def program(disk: Volume, tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """The program, with its state on that file system and other files elsewhere."""
    made = Program(disk.inside / "state", tmp_path, disk.commands(typed))
    yield made
    made.end()


def failing(server: Server) -> bool:
    """Return whether the metric reports an unwritable state directory."""
    return server.metric("meshwright_state_failing") == 1


def until_full(server: Server, take: Callable[[], None]) -> None:
    """Fill the disk repeatedly until the server notices, because its own attempts free space."""

    def noticed() -> bool:
        take()
        return failing(server)

    server.until(noticed)


def listed(program: Program) -> dict[str, str]:
    """Return the progress of each certificate by its proxy's UUID, read from the ledger's file."""
    query = "SELECT uuid, claimed_at, admitted_at, revoked_at FROM proxy_certificates"
    path = program.state / "ledger.sqlite"
    rows = f"sqlite3.connect({str(path)!r}).execute({query!r}).fetchall()"
    script = f"import json, sqlite3; print(json.dumps({rows}))"
    read = subprocess.run(
        [*program.commands.enter, sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    words = ("claimed", "admitted", "revoked")
    return {
        uuid: " ".join(word for word, at in zip(words, stamps, strict=True) if at)
        for uuid, *stamps in json.loads(read.stdout)
    }


def test_server_on_a_full_disk_stays_ready_and_logs_it_once(program: Program, disk: Volume) -> None:
    """New proxies are served, and their claims are written when there is space again."""
    program.issued(*PROXIES)
    server = program.serve()
    assert server.get("/healthz/ready") == (200, "ready\n")
    assert program.served(server, "one")
    until_full(server, disk.fill)
    status, text = server.get("/healthz/ready")
    reason = f"the state directory {program.state} cannot be written: {FULL}"
    assert (status, text) == (200, f"ready\nbut: {reason}; {REMEMBERED.format(0)}\n")
    assert program.served(server, "two")
    server.until(lambda: server.said("endpoint admitted")[1:])
    disk.free()
    server.until(lambda: not failing(server))
    assert server.get("/healthz/ready") == (200, "ready\n")
    assert [item["reason"] for item in server.said(TROUBLE)] == [reason]
    assert len(server.said("state directory can be written again")) == 1
    server.until(
        lambda: listed(program) == {"one": "claimed admitted", "two": "claimed admitted", "three": ""}
    )


def test_certificate_is_revoked_on_a_full_disk_with_or_without_a_server(
    program: Program, disk: Volume
) -> None:
    """The revocations, and that of a join token, are in the file, so they outlive the server."""
    one, two, _ = program.issued(*PROXIES)
    at = ("--state", str(program.state))
    token = json.loads(program.run("certs", "token", "create", *at, *SERVICE, "--json")[1])["id"]
    server = program.serve()
    until_full(server, disk.fill)
    longest = ("--reason", "because " * 25)
    assert program.revoke(one, *longest) == (0, f"revoked {one} of one.store.shop\n", "")
    assert not program.served(server, "one")
    assert program.run("certs", "token", "revoke", *at, token)[0] == 0
    server.stop()
    (left,) = json.loads(program.run("certs", "token", "list", *at, "--json")[1])["join_tokens"]
    assert left["state"] == "revoked"
    assert program.revoke(two, *longest) == (0, f"revoked {two} of two.store.shop\n", "")
    assert listed(program) == {"one": "revoked", "two": "revoked", "three": ""}
    again = program.serve()
    assert [program.served(again, proxy) for proxy in PROXIES] == [False, False, True]


@pytest.mark.parametrize("ending", ["stopped", "killed"])
def test_server_starts_on_a_full_disk_with_its_certificates(
    program: Program, disk: Volume, ending: str
) -> None:
    """Neither the CA's nor the server's nor the service's certificate is replaced."""
    program.issued(*PROXIES)
    server = program.serve()
    assert program.served(server, "one")
    kept = sorted((disk.path / "state").glob("**/*.pem"))
    before = [path.read_bytes() for path in kept]
    assert len(kept) == 3
    disk.fill()
    if ending == "stopped":
        server.stop()
    else:
        server.process.kill()
        server.process.wait()
    again = program.serve()
    assert program.served(again, "one")
    assert [path.read_bytes() for path in kept] == before
    assert again.get("/healthz/ready")[0] == 200
    again.until(lambda: failing(again))


@pytest.mark.parametrize("running", [True, False])
def test_issuing_on_a_full_disk_leaves_no_partial_files(
    program: Program, disk: Volume, running: bool
) -> None:
    """The message names the directory and the reason, and existing files stay."""
    program.issued("one")
    server = program.serve() if running else None
    out, new = disk.inside / "one", disk.inside / "new"
    assert program.issue("one", out)[0] == 0
    before = {path.name: path.read_bytes() for path in (disk.path / "one").iterdir()}
    disk.fill()
    for directory in (out, new):
        status, text, complaint = program.issue("two", directory)
        assert (status, text) == (2, "")
        assert complaint == (
            f"cannot write to {directory}: {FULL}; the certificate was not issued: give another directory "
            "with --out"
        )
        assert "PRIVATE" not in complaint
    assert {path.name: path.read_bytes() for path in (disk.path / "one").iterdir()} == before
    assert not (disk.path / "new").exists()
    assert server is None or server.process.poll() is None


def test_first_start_on_a_full_disk_is_refused_without_a_partial_ca(program: Program, disk: Volume) -> None:
    """With free space the same start succeeds."""
    disk.fill()
    assert FULL in program.refused()
    assert not (disk.path / "state" / "ca").exists()
    disk.free()
    program.serve()


def test_disk_without_inodes_is_reported_as_such(program: Program, disk: Volume) -> None:
    """Blocks are left, but no inodes. Valid certificates are served, and a revocation is written."""
    one, *_ = program.issued(*PROXIES)
    server = program.serve()
    until_full(server, disk.take_all_files)
    (answer,) = server.said(TROUBLE)
    assert answer["reason"].endswith(f"{FULL} (more files cannot be made; there are blocks left)")
    assert program.revoke(one)[0] == 0
    assert [program.served(server, proxy) for proxy in PROXIES] == [False, True, True]


def test_full_disk_loses_no_claim_and_no_revocation_of_3000_certificates(disk: Volume) -> None:
    """Claims that do not fit are kept in memory. Each revocation is in the file at once."""
    run = [*disk.enter, sys.executable, "-m", "tests.feature.state.full_disk_program", str(disk.inside)]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "remembered": True,
        "counted": 3000,
        "revoked": 1500,
        "left": 0,
        "written": 3000,
    }
