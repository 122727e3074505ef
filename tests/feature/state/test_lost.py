"""A CA without its ledger, a ledger without its CA: nothing begins anew unless it is told to."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.program import Program

ANEW = "then every proxy needs a new certificate"
Damage = Callable[[Path], None]


def without_ledger(state: Path) -> None:
    """Remove the ledger, as one who restores the CA from a backup and nothing else."""
    for path in state.glob("ledger.sqlite*"):
        path.unlink()


def truncated_ledger(state: Path) -> None:
    """Leave an empty file."""
    (state / "ledger.sqlite").write_bytes(b"")


def emptied_ledger(state: Path) -> None:
    """Leave a ledger without a row."""
    connection = sqlite3.connect(state / "ledger.sqlite")
    connection.execute("DELETE FROM proxy_certificates")
    connection.commit()
    connection.close()


def without_ca(state: Path) -> None:
    """Remove the CA."""
    shutil.rmtree(state / "ca")


def without_either(state: Path) -> None:
    """Remove both; the certificate that a server has shown is there."""
    without_ledger(state)
    without_ca(state)


def contents(state: Path) -> dict[str, bytes]:
    """Return every file that matters: no locks, nor what SQLite writes beside a ledger."""
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
def test_a_loss_is_refused_until_it_is_meant(used: Program, damage: Damage, said: str) -> None:
    """By the server and by both commands, and nothing is made; then one begins anew, once."""
    damage(used.state)
    before = contents(used.state)
    sentence = used.refused()
    assert sentence.startswith(said.format(state=used.state))
    # Where the CA is lost, the ledger's first is one of those that were issued in the same second.
    first = sentence.rpartition("--begin-anew ")[2].removesuffix(f" ({ANEW})")
    assert first in (used.serials if damage is without_ca else used.serials[:1])
    second = next(each for each in used.serials if each != first)
    assert "so the server would refuse every proxy; restore " in sentence
    for status, out, complaint in (used.issue("one", used.files / "x"), used.revoke(second)):
        assert (status, out, complaint) == (2, "", sentence)
    assert used.refused("--begin-anew", second) == sentence
    assert contents(used.state) == before
    server = used.serve("--begin-anew", first)
    assert [each["lost"] for each in server.said("new ledger started; proxies need new certificates")]
    assert not used.served(server, "one")
    used.issued("one")
    assert used.served(server, "one")
    server.stop()
    damage(used.state)
    assert first not in used.refused("--begin-anew", first)


def test_what_is_put_back_serves_as_before(used: Program) -> None:
    """The way out that loses nothing."""
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


def test_the_ledger_of_another_mesh_is_refused(used: Program) -> None:
    """And so is the CA of another one, whole or file by file."""
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
    said = f"the CA in {state}/ca did not issue the certificates in ledger {state}/ledger.sqlite"
    assert used.refused().startswith(said)
    (state / "ca" / "first-proxy").unlink()
    assert used.refused().startswith(said)
    shutil.copy2(other.state / "ca" / "first-proxy", state / "ca" / "first-proxy")
    assert f"the first proxy certificate that the CA issued, {other_first}, is not in" in used.refused()


@pytest.mark.parametrize("damage", [without_ledger, without_either])
def test_a_directory_of_an_older_program_is_known_by_what_a_server_left(
    used: Program, damage: Damage
) -> None:
    """There is no note beside its CA; the certificate that its server has shown says that one has run."""
    (used.state / "ca" / "first-proxy").unlink()
    damage(used.state)
    sentence = used.refused()
    assert ", but a server has run there before, so" in sentence or "has issued certificates" in sentence
    serial = sentence.partition("--begin-anew ")[2].partition(" (")[0]
    used.serve("--begin-anew", serial).stop()
    used.serve().stop()


def test_an_older_directory_is_taken_over(used: Program) -> None:
    """Without the note, and without the tables that the ledger has besides."""
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


def test_a_command_makes_a_mesh_in_an_empty_directory_only_and_says_so(program: Program) -> None:
    """A path that was mistaken is no new mesh; to revoke, there must be one."""
    assert program.revoke("abc") == (
        2,
        "",
        f"cannot revoke serial abc: {program.state} has no CA and no issued certificates",
    )
    assert not program.state.exists()
    status, out, said = program.issue("one")
    assert (status, out.splitlines()[0]) == (0, "one.store.shop")
    assert said == f"created a new CA in {program.state}, which was not a state directory before"
    assert program.issue("two")[2] == ""
    mistaken = Program(program.files, program.files / "mistaken", program.commands)
    status, out, said = mistaken.issue("one")
    assert (status, out) == (2, "")
    assert said.startswith(f"{program.files} has no CA, but other files (")
    assert not (program.files / "ca").exists()
