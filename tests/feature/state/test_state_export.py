"""Tests of backups by `meshwright state export` and `import`, with real servers and commands."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.forked_cli import Typed
from tests.tools.program import Program
from tests.tools.volumes import volume

PASSPHRASE = "correct horse battery\n"


@pytest.fixture
def passphrase(tmp_path: Path) -> Path:
    """Return the file with the passphrase of the exports."""
    return _passphrase(tmp_path / "passphrase", PASSPHRASE)


@pytest.fixture
def restored(used: Program, typed: Typed, tmp_path: Path) -> Iterator[Program]:
    """Return the program with an empty state directory, and the certificates of the used one."""
    made = Program(tmp_path / "restored", tmp_path / "other", typed)
    made.files, made.serials = used.files, used.serials
    yield made
    made.end()


def _passphrase(path: Path, words: str) -> Path:
    path.write_text(words)
    path.chmod(0o600)
    return path


def _export(program: Program, file: Path, passphrase: Path, *more: str) -> tuple[int, str, str]:
    given = ("--state", str(program.state), "--passphrase-file", str(passphrase))
    return program.run("state", "export", str(file), *given, *more)


def _import(program: Program, file: Path, passphrase: Path, *more: str) -> tuple[int, str, str]:
    given = ("--state", str(program.state), "--passphrase-file", str(passphrase))
    return program.run("state", "import", str(file), *given, *more)


def test_restored_server_serves_the_same_proxies(
    used: Program, restored: Program, passphrase: Path, tmp_path: Path
) -> None:
    """With the same service certificates. Join tokens work, and a revoked proxy stays revoked."""
    file, (one, two, _) = tmp_path / "mesh.state", used.serials
    made = used.run(
        *("certs", "token", "create", "--state", str(used.state), "--service", "store"),
        *("--namespace", "shop", "--json"),
    )
    token = json.loads(made[1])
    server = used.serve()
    assert used.served(server, "one")
    server.stop()
    assert used.revoke(two, "--reason", "stolen")[0] == 0
    status, out, complaint = _export(used, file, passphrase, "--json")
    assert (status, complaint) == (0, "")
    document = json.loads(out)
    assert document["counts"] == {
        "proxy_certificates": 3,
        "revoked": 1,
        "service_certificates": 1,
        "join_tokens": 1,
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content = file.read_text()
    assert not [secret for secret in ("PRIVATE KEY", one, token["id"], "stolen") if secret in content]

    tried = json.loads(_import(restored, file, passphrase, "--dry-run", "--json")[1])
    assert tried == {
        **document, "place": f"the state directory {restored.state}", "imported": False
    }  # fmt: skip
    assert not restored.state.exists()
    status, out, complaint = _import(restored, file, passphrase)
    assert (status, complaint) == (0, "")
    assert out.splitlines() == [
        f"mesh with the CA {document['root']}",
        "3 proxy certificates (1 revoked), 1 service certificate, 1 join token",
        f"exported at {document['exported_at']} by version {document['version']}",
        f"imported into the state directory {restored.state}",
    ]
    service = Path("services", "shop", "store", "certificate.pem")
    assert (restored.state / service).read_bytes() == (used.state / service).read_bytes()
    listing = ("certs", "token", "list", "--json", "--state")
    assert restored.run(*listing, str(restored.state)) == used.run(*listing, str(used.state))

    server = restored.serve()
    assert restored.served(server, "one")
    assert not restored.served(server, "two")
    server.stop()
    assert (restored.state / service).read_bytes() == (used.state / service).read_bytes()


def test_running_server_is_exported(
    used: Program, restored: Program, passphrase: Path, tmp_path: Path
) -> None:
    """With what it has done until then: here the service certificate, and a revocation."""
    server, file = used.serve(), tmp_path / "mesh.state"
    assert used.served(server, "one")
    assert used.revoke(used.serials[1])[0] == 0
    document = json.loads(_export(used, file, passphrase, "--json")[1])
    counts = {"proxy_certificates": 3, "revoked": 1, "service_certificates": 1, "join_tokens": 0}
    assert document["counts"] == counts
    log = server.log_path.read_text()
    assert [line["action"] for line in server.log() if line.get("action") == "export state of the mesh"]
    assert not [secret for secret in (PASSPHRASE.strip(), PASSPHRASE.strip().encode().hex()) if secret in log]
    assert _import(used, file, passphrase)[0] == 2, "the directory is in use, and has a mesh"
    server.stop()
    assert _import(restored, file, passphrase)[0] == 0
    server = restored.serve()
    assert restored.served(server, "one")
    assert not restored.served(server, "two")
    server.stop()


def test_export_can_be_printed(used: Program, restored: Program, passphrase: Path, tmp_path: Path) -> None:
    """For a command in a container; remarks are on standard error, so that the output is the file."""
    given = ("state", "export", "-", "--state", str(used.state), "--passphrase-file", str(passphrase))
    status, out, complaint = used.run(*given)
    assert status == 0, complaint
    assert complaint.endswith("3 proxy certificates (0 revoked), 0 service certificates, 0 join tokens")
    file = tmp_path / "mesh.state"
    file.write_text(out)
    assert _import(restored, file, passphrase)[0] == 0
    both = "--json and the file - exclude each other: both are printed on standard output"
    assert used.run(*given, "--json") == (2, "", both)


def test_place_that_is_not_empty_is_refused(
    used: Program, restored: Program, passphrase: Path, tmp_path: Path
) -> None:
    """Neither a mesh nor a file is overwritten; the sentences name them."""
    file = tmp_path / "mesh.state"
    root = json.loads(_export(used, file, passphrase, "--json")[1])["root"]
    assert _export(used, file, passphrase) == (
        2,
        "",
        f"{file} exists already, and is not overwritten: give a new file",
    )
    restored.issued("one")
    files = sorted(restored.state.rglob("*"))
    status, _, complaint = _import(restored, file, passphrase)
    assert status == 2
    own = json.loads(_export(restored, tmp_path / "own.state", passphrase, "--json")[1])["root"]
    assert complaint == (
        f"the state directory {restored.state} has the CA {own}, and the file has the CA {root}: import into "
        "an empty directory"
    )
    assert sorted(restored.state.rglob("*")) == files


def test_bad_files_and_passphrases_are_refused(
    used: Program, restored: Program, passphrase: Path, tmp_path: Path
) -> None:
    """Each with one sentence that has neither passphrase. The directory is not made."""
    file, wrong = tmp_path / "mesh.state", _passphrase(tmp_path / "wrong", "wrong horse battery\n")
    short = _passphrase(tmp_path / "short", "short\n")
    assert _export(used, file, short)[2] == (
        "the passphrase has 5 characters, and needs at least 12, because whoever has the file can try any "
        "number of them"
    )
    assert (
        _export(used, file, tmp_path / "missing")[2] == f"passphrase-file {tmp_path / 'missing'} is missing"
    )
    alone = used.run("state", "export", str(file), "--state", str(used.state))
    assert alone == (2, "", "the passphrase is missing: give its file with --passphrase-file")
    nowhere = _export(used, tmp_path / "no" / "mesh.state", passphrase)[2]
    assert (
        nowhere
        == f"cannot write {tmp_path / 'no' / 'mesh.state'}: No such file or directory; give another file"
    )
    assert not file.exists()

    assert _export(used, file, passphrase)[0] == 0
    text = file.read_text()
    truncated, foreign = tmp_path / "truncated", tmp_path / "foreign"
    truncated.write_text(text[:-100])
    foreign.write_bytes(b"\xff\x00 another file")
    no = "cannot be imported"
    unfit = "the passphrase is wrong, or the header is damaged: use the passphrase of the export"
    domain = "has the state of the trust domain cluster.local, and the setting trust_domain"
    assert [
        _import(restored, file, wrong)[2],
        _import(restored, truncated, passphrase)[2],
        _import(restored, foreign, passphrase)[2],
        _import(restored, tmp_path / "missing", passphrase)[2],
        _import(restored, file, passphrase, "--set", "trust_domain=other.example")[2],
        _import(restored, file, passphrase, "--set", "state")[2],
    ] == [
        f"{file} {no}: {unfit}",
        f"{truncated} {no}: the file is damaged or was truncated: use another copy",
        f"{foreign} {no}: the file is not an export of `meshwright state export`",
        f"{tmp_path / 'missing'} cannot be read: No such file or directory",
        f"{file} {domain} is other.example: set trust_domain=cluster.local",
        "--set is 'state': must be NAME=VALUE, for example quiet_seconds=0.2",
    ]
    assert not restored.state.exists()


def test_encrypted_directory_is_exported_and_restored_with_another_passphrase(
    used: Program, restored: Program, passphrase: Path, tmp_path: Path
) -> None:
    """The passphrase of the keys at rest is not the one of the export."""
    file, keys = tmp_path / "mesh.state", _passphrase(tmp_path / "keys", "the first one\n")
    other = _passphrase(tmp_path / "others", "the second one\n")
    assert _export(used, file, passphrase, "--set", f"key_passphrase_file={keys}")[0] == 0
    assert _import(restored, file, passphrase, "--set", f"key_passphrase_file={other}")[0] == 0
    assert b"SEALED KEY" in (restored.state / "ca" / "ca.key").read_bytes()
    server = restored.serve("--set", f"key_passphrase_file={other}")
    assert restored.served(server, "one")
    server.stop()


def test_moved_directory_is_refused_by_all_commands(used: Program, passphrase: Path, tmp_path: Path) -> None:
    """The sentence says where the mesh is now."""
    mark = {"form": 1, "root": "ab12", "store": "kubernetes", "at": "2031-05-06T07:08:09+00:00"}
    moved = used.state / "moved.json"
    moved.write_text(json.dumps(mark))
    moved.chmod(0o600)
    state = ("--state", str(used.state))
    sentences = {
        used.refused(),
        _export(used, tmp_path / "mesh.state", passphrase)[2],
        used.issue("one", tmp_path / "x")[2],
        used.revoke(used.serials[0])[2],
        used.run("certs", "list", *state)[2],
        used.run("certs", "seal", *state, "--key-passphrase-file", str(passphrase))[2],
        used.run("certs", "rebuild-ledger", "--finish", *state)[2],
        used.run("certs", "token", "list", *state)[2],
    }
    (sentence,) = sentences
    assert sentence.startswith(
        f"the mesh of {used.state} (CA ab12) was moved into the store kubernetes at 2031-05-06T07:08:09+00:00"
    )
    moved.chmod(0o644)
    assert "moved.json can be read by other users" in used.refused()


def test_full_disk_leaves_no_half_export(used: Program, passphrase: Path, typed: Typed) -> None:
    """The file is removed, and an import into a full directory can be repeated when there is space."""
    with volume(size="1m") as disk:
        program = Program(used.state, used.files / "full", disk.commands(typed))
        file, path = disk.inside / "mesh.state", disk.path / "mesh.state"
        disk.fill()
        status, _, complaint = _export(program, file, passphrase)
        assert (status, complaint) == (
            2,
            f"cannot write {file}: No space left on device; the state was not exported",
        )
        assert not path.exists()
        disk.free()
        assert _export(program, file, passphrase)[0] == 0

        program.state = disk.inside / "state"
        disk.fill()
        status, _, complaint = _import(program, file, passphrase)
        assert status == 2
        assert "No space left on device" in complaint
        disk.free()
        assert _import(program, file, passphrase)[0] == 0
        assert program.run("certs", "list", "--state", str(program.state))[0] == 0


def test_unreadable_export_is_refused(used: Program, restored: Program, passphrase: Path) -> None:
    """A directory is not a file."""
    assert _import(restored, used.state, passphrase)[2] == f"{used.state} cannot be read: Is a directory"
