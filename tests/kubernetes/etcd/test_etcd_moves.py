"""Test of a mesh on its way from a state directory into a real etcd and back, by commands."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.etcd.members import RealMember
from tests.tools.forked_cli import Typed
from tests.tools.program import PROXIES, Program

PASSPHRASE = "correct horse battery\n"


@pytest.fixture
def programs(typed: Typed, tmp_path: Path) -> Iterator[tuple[Program, Program]]:
    """Return programs with two state directories that do not exist yet."""
    one, two = (Program(tmp_path / name / "state", tmp_path / name, typed) for name in ("a", "b"))
    yield one, two
    for each in (one, two):
        each.end()


def _run(program: Program, *arguments: str) -> str:
    status, out, complaint = program.run(*arguments, "--state", str(program.state))
    assert status == 0, complaint
    return out


def _listed(program: Program) -> list[object]:
    """Return all proxy certificates and join tokens, and the CA without its place."""
    certificates, tokens = (
        json.loads(_run(program, *words, "list", "--json")) for words in (("certs",), ("certs", "token"))
    )
    del certificates["authority"]["place"]
    return [certificates, tokens]


def test_mesh_moves_into_etcd_and_back(
    programs: tuple[Program, Program], own_member: RealMember, tmp_path: Path
) -> None:
    """Revocations and join tokens are the same in the directory after the way back."""
    one, two = programs
    passphrase, file = tmp_path / "passphrase", tmp_path / "mesh.state"
    passphrase.write_text(PASSPHRASE)
    passphrase.chmod(0o600)
    serials = one.issued(*PROXIES)
    assert one.revoke(serials[0], "--reason", "stolen")[0] == 0
    _run(one, "certs", "token", "create", "--service", "store", "--namespace", "shop")
    before = _listed(one)

    store = (
        *("--set", "store=etcd", "--set", f"etcd_endpoints={own_member.url}"),
        *("--set", f"key_passphrase_file={passphrase}"),
    )
    moved = json.loads(_run(one, "state", "move", "--json", *store))
    assert moved == {"moved": True, "store": "etcd", "records": 5}
    given = ("--passphrase-file", str(passphrase))
    _run(one, "state", "export", str(file), *given, *store)
    _run(two, "state", "import", str(file), *given)
    assert _listed(two) == before
    again = two.run("state", "move", "--state", str(two.state), *store)
    assert (again[0], again[1].count("0 of them written")) == (0, 1), again
