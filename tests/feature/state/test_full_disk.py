"""A state directory on a file system that is really full: what goes on, what is said, what comes after."""

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
    """Return a file system of 4 MiB."""
    with volume() as made:
        yield made


@pytest.fixture
def program(disk: Volume, tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """Return the program, its state on that file system and all else on another."""
    made = Program(disk.inside / "state", tmp_path, disk.commands(typed))
    yield made
    made.end()


def failing(server: Server) -> bool:
    """Say whether the metric says that the state directory cannot be written."""
    return server.metric("meshwright_state_failing") == 1


def until_full(server: Server, take: Callable[[], None]) -> None:
    """Take what room there is, again and again: the server frees what it tries with."""

    def noticed() -> bool:
        take()
        return failing(server)

    server.until(noticed)


def listed(program: Program) -> dict[str, str]:
    """Return how far each certificate has come, by its proxy's UUID, from the ledger's file itself."""
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


def test_a_server_goes_on_and_says_so_once(program: Program, disk: Volume) -> None:
    """It stays ready with a remark, lets in who comes for the first time, and says when it is over."""
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
    assert [each["reason"] for each in server.said(TROUBLE)] == [reason]
    assert len(server.said("state directory can be written again")) == 1
    server.until(
        lambda: listed(program) == {"one": "claimed admitted", "two": "claimed admitted", "three": ""}
    )


def test_a_certificate_is_revoked_by_the_server_and_without_one(program: Program, disk: Volume) -> None:
    """Both are in the file: they outlive the server and the disk that is full. So with a join token."""
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
    assert [program.served(again, each) for each in PROXIES] == [False, False, True]


@pytest.mark.parametrize("ending", ["stopped", "killed"])
def test_a_server_starts_on_a_full_disk_and_serves_what_is_valid(
    program: Program, disk: Volume, ending: str
) -> None:
    """With the certificates that it had: neither the mesh nor its own is keyed anew."""
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
def test_issuing_without_room_leaves_no_half_files(program: Program, disk: Volume, running: bool) -> None:
    """One sentence says where and why; what was there before is there still."""
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
            f"cannot write to {directory}: {FULL}; no certificate was issued: "
            "give another directory with --out"
        )
        assert "PRIVATE" not in complaint
    assert {path.name: path.read_bytes() for path in (disk.path / "one").iterdir()} == before
    assert not (disk.path / "new").exists()
    assert server is None or server.process.poll() is None


def test_a_first_start_on_a_full_disk_is_one_sentence(program: Program, disk: Volume) -> None:
    """There is no authority to be half-made; with room it starts."""
    disk.fill()
    assert FULL in program.refused()
    assert not (disk.path / "state" / "ca").exists()
    disk.free()
    program.serve()


def test_a_disk_without_files_is_told_from_one_without_room(program: Program, disk: Volume) -> None:
    """There are blocks left, and no inodes; what was valid is served, and a revocation written."""
    one, *_ = program.issued(*PROXIES)
    server = program.serve()
    until_full(server, disk.take_all_files)
    (said,) = server.said(TROUBLE)
    assert said["reason"].endswith(f"{FULL} (no more files can be made; there are blocks left)")
    assert program.revoke(one)[0] == 0
    assert [program.served(server, each) for each in PROXIES] == [False, True, True]


def test_of_a_thousand_certificates_nothing_is_forgotten(disk: Volume) -> None:
    """Pages run out for claims, which are remembered and count; every revocation is in the file at once."""
    run = [*disk.enter, sys.executable, "-m", "tests.feature.state.crowded", str(disk.inside)]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "remembered": True,
        "counted": 3000,
        "revoked": 1500,
        "left": 0,
        "written": 3000,
    }
