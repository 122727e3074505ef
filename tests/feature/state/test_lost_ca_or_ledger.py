"""Tests of a lost CA or ledger: a new one begins only on request."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.program import Program

ANEW = "then every proxy needs a new certificate"
Damage = Callable[[Path], None]


def without_ledger(state: Path) -> None:
    """Remove the ledger, as after a restored backup that has only the CA."""
    for path in state.glob("ledger.sqlite*"):
        path.unlink()


def truncated_ledger(state: Path) -> None:
    """Leave an empty file."""
    (state / "ledger.sqlite").write_bytes(b"")


def emptied_ledger(state: Path) -> None:
    """Leave a ledger without rows."""
    connection = sqlite3.connect(state / "ledger.sqlite")
    connection.execute("DELETE FROM proxy_certificates")
    connection.commit()
    connection.close()


def without_ca(state: Path) -> None:
    """Remove the CA."""
    shutil.rmtree(state / "ca")


def without_either(state: Path) -> None:
    """Remove both. The server's certificate stays."""
    without_ledger(state)
    without_ca(state)


def contents(state: Path) -> dict[str, bytes]:
    """Return every file, except locks and SQLite's journals."""
    return {
        str(path.relative_to(state)): path.read_bytes()
        for path in sorted(state.rglob("*"))
        if path.is_file() and not path.name.endswith((".lock", "-journal"))
    }


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            without_ledger,
            "ledger {state}/ledger.sqlite is missing or empty, but the CA in {state}/ca has issued",
        ),
        (truncated_ledger, "ledger {state}/ledger.sqlite is missing or empty, but the CA in {state}/ca has"),
        (
            emptied_ledger,
            "ledger {state}/ledger.sqlite is missing or empty, but the CA in {state}/ca has issued",
        ),
        (
            without_ca,
            "the CA in {state}/ca is missing, but ledger {state}/ledger.sqlite has certificates of this CA",
        ),
    ],
)
def test_lost_ca_or_ledger_is_refused_until_begin_anew(used: Program, damage: Damage, said: str) -> None:
    """Server and commands refuse, without a change. `--begin-anew` with the named serial works once."""
    damage(used.state)
    before = contents(used.state)
    sentence = used.refused()
    assert sentence.startswith(said.format(state=used.state))
    # Without the CA, the ledger's first certificate is one of those that were issued in the same second.
    first = sentence.rpartition("--begin-anew ")[2].removesuffix(f" ({ANEW})")
    assert first in (used.serials if damage is without_ca else used.serials[:1])
    second = next(serial for serial in used.serials if serial != first)
    assert "so the server would refuse every proxy; restore " in sentence
    for status, out, complaint in (used.issue("one", used.files / "x"), used.revoke(second)):
        assert (status, out, complaint) == (2, "", sentence)
    assert used.refused("--begin-anew", second) == sentence
    assert contents(used.state) == before
    server = used.serve("--begin-anew", first)
    assert [item["lost"] for item in server.said("new ledger started; proxies need new certificates")]
    assert not used.served(server, "one")
    used.issued("one")
    assert used.served(server, "one")
    server.stop()
    damage(used.state)
    assert first not in used.refused("--begin-anew", first)


def test_restored_ledger_or_ca_serves_as_before(used: Program) -> None:
    """A restored backup loses no certificate."""
    kept = used.state.with_name("kept")
    shutil.copytree(used.state, kept)
    for damage, name in ((without_ledger, "ledger.sqlite"), (without_ca, "ca")):
        damage(used.state)
        used.refused()
        copy = shutil.copytree if (kept / name).is_dir() else shutil.copy2
        copy(kept / name, used.state / name)
        server = used.serve()
        assert used.served(server, "one")
        server.stop()


def test_ledger_or_ca_of_another_mesh_is_refused(used: Program) -> None:
    """Each combination of files of two meshes is recognised."""
    first, *_ = used.serials
    other = Program(used.state.with_name("other"), used.files / "others", used.commands)
    (other_first,) = other.issued("one")
    state = used.state
    shutil.copytree(state, kept := state.with_name("kept"))
    shutil.copy2(other.state / "ledger.sqlite", state / "ledger.sqlite")
    assert f"the first proxy certificate that the CA issued, {first}, is not in the ledger" in used.refused()
    shutil.copy2(kept / "ledger.sqlite", state / "ledger.sqlite")
    for name in ("ca.pem", "ca.key"):
        shutil.copy2(other.state / "ca" / name, state / "ca" / name)
    text = f"the CA in {state}/ca did not issue the certificates in ledger {state}/ledger.sqlite"
    assert used.refused().startswith(text)
    (state / "ca" / "first-proxy").unlink()
    assert used.refused().startswith(text)
    shutil.copy2(other.state / "ca" / "first-proxy", state / "ca" / "first-proxy")
    assert f"the first proxy certificate that the CA issued, {other_first}, is not in" in used.refused()


@pytest.mark.parametrize("damage", [without_ledger, without_either])
def test_loss_in_a_directory_of_an_older_release_is_recognised(used: Program, damage: Damage) -> None:
    """Without the file `first-proxy` the server's certificate shows that a server has run."""
    (used.state / "ca" / "first-proxy").unlink()
    damage(used.state)
    sentence = used.refused()
    assert ", but a server has run there before, so" in sentence or "has issued certificates" in sentence
    serial = sentence.partition("--begin-anew ")[2].partition(" (")[0]
    used.serve("--begin-anew", serial).stop()
    used.serve().stop()


def test_directory_of_an_older_release_is_migrated(used: Program) -> None:
    """The file `first-proxy` and the ledger's missing tables are created."""
    (used.state / "ca" / "first-proxy").unlink()
    connection = sqlite3.connect(used.state / "ledger.sqlite")
    connection.executescript("DROP TABLE authority; DROP TABLE spare; PRAGMA journal_mode = WAL")
    connection.close()
    server = used.serve()
    assert used.served(server, "one")
    server.stop()
    assert (used.state / "ca" / "first-proxy").exists()
    without_ledger(used.state)
    assert "--begin-anew" in used.refused()


def test_command_creates_a_ca_only_in_an_empty_directory(program: Program) -> None:
    """A mistyped path must not become a new mesh, and revocation needs an existing one."""
    assert program.revoke("abc") == (
        2,
        "",
        f"cannot revoke serial abc: {program.state} has neither a CA nor issued certificates",
    )
    assert not program.state.exists()
    status, out, text = program.issue("one")
    assert (status, out.splitlines()[0]) == (0, "one.store.shop")
    assert text == f"created a new CA in {program.state}, which was not a state directory before"
    assert program.issue("two")[2] == ""
    mistaken = Program(program.files, program.files / "mistaken", program.commands)
    status, out, text = mistaken.issue("one")
    assert (status, out) == (2, "")
    assert text.startswith(f"{program.files} lacks a CA, but has other files (")
    assert not (program.files / "ca").exists()
