"""Tests of a mesh below a foreign CA whose root names no trust domain: join, renewal, roots."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certs.errors import StateError
from certs.issuers.file_authority import WatchedFiles, WatchedIssuer
from certs.keys.bundle import TrustBundle
from certs.keys.leaf import is_signed_by_bundle
from meshwright.agent import certificates
from meshwright.agent.credentials import CredentialsError
from meshwright.agent.errors import AgentError
from meshwright.cli.printing.files import write_credentials
from meshwright.mesh.names import TrustDomain
from tests.feature.identity.test_agent_enrolment import Joining, joining
from tests.feature.identity.test_enrolment import PORTS
from tests.feature.identity.test_identity import NAME, workload
from tests.unit.certs.issuers.example_cas import Ca, ca

Serve = Callable[..., Awaitable[Any]]
MESHS = TrustDomain("cluster.local")
WANTED = {"uuid": "one", "service": "store", "namespace": "shop"}


def put(folder: Path, *, intermediate: bool, domains: tuple[str, ...] = ()) -> Ca:
    """Write a CA in the form of a Secret, and return its root."""
    now = datetime.now(UTC)
    root = ca("Company", now, domains=domains)
    (ca("Mesh", now, root) if intermediate else root).put(folder, root)
    return root


@pytest.mark.parametrize("intermediate", [False, True])
async def test_machine_below_a_foreign_ca_needs_the_trust_domain_once(
    serve: Serve, tmp_path: Path, *, intermediate: bool
) -> None:
    """The agent needs `--trust-domain` for its first join only.

    The reason: the file beside the certificate keeps the name.
    """
    root = put(tmp_path / "ca", intermediate=intermediate)
    server = await serve(workload("one"), **PORTS, authority_directory=tmp_path / "ca")
    token = str((await server.ask("POST", "/certs/tokens", WANTED))["token"])
    machine = joining(server, tmp_path, token)
    with pytest.raises(AgentError, match=r"lacks a trust domain .* with --trust-domain"):
        await machine.enrolled.begin(machine.stop)
    machine = joining(server, tmp_path, token, trust_domain=MESHS)
    await machine.enrolled.begin(machine.stop)
    first = certificates.read(machine.folder)
    assert (str(first.name), first.trust_domain) == (NAME, MESHS)
    untold = Joining(machine.folder, replace(machine.settings, trust_domain=None))
    await untold.enrolled._renew()
    second = certificates.read(machine.folder)
    assert second.serial != first.serial
    assert is_signed_by_bundle(second.chain, root.pem)


async def test_trust_domain_file_beside_the_roots_is_sufficient(serve: Serve, tmp_path: Path) -> None:
    """A pod has its roots and the trust domain as files of a volume."""
    root = put(tmp_path / "ca", intermediate=True)
    server = await serve(workload("one"), **PORTS, authority_directory=tmp_path / "ca")
    token = str((await server.ask("POST", "/certs/tokens", WANTED))["token"])
    (tmp_path / "roots").mkdir()
    (tmp_path / "roots" / "ca.pem").write_bytes(root.pem)
    (tmp_path / "roots" / "trust-domain").write_text("cluster.local")
    machine = joining(server, tmp_path, token, authority=tmp_path / "roots" / "ca.pem")
    await machine.enrolled.begin(machine.stop)
    assert certificates.read(machine.folder).trust_domain == MESHS


async def test_root_file_that_grpc_cannot_read_is_refused(serve: Serve, tmp_path: Path) -> None:
    """A byte order mark makes the file unreadable, and the error names `--ca`."""
    server = await serve(workload("one"), **PORTS)
    (tmp_path / "ca.pem").write_bytes(b"\xef\xbb\xbf" + server.authority.trust_bundle())
    token = str((await server.ask("POST", "/certs/tokens", WANTED))["token"])
    machine = joining(server, tmp_path, token, authority=tmp_path / "ca.pem")
    with pytest.raises(AgentError, match="the file with the root \\(--ca\\) cannot be read:"):
        await machine.enrolled.begin(machine.stop)


async def test_issued_credentials_include_the_trust_domain(serve: Serve, tmp_path: Path) -> None:
    """Without the file the option must give the trust domain. An invalid file is refused."""
    put(tmp_path / "ca", intermediate=True)
    server = await serve(workload("one"), **PORTS, authority_directory=tmp_path / "ca")
    made = await server.ask("POST", "/certs/issue-proxy", WANTED)
    chain, key, roots = (made[item].encode() for item in ("chain_pem", "key_pem", "trust_bundle_pem"))
    out = tmp_path / "out"
    write_credentials(out, chain, key, roots, made["trust_domain"])
    assert certificates.read(out).trust_domain == MESHS
    (out / "trust-domain").unlink()
    with pytest.raises(CredentialsError, match=r"in a file trust-domain in the same directory as ca\.pem"):
        certificates.read(out)
    assert certificates.read(out, configured=MESHS).trust_domain == MESHS
    (out / "trust-domain").write_text("Not a name")
    with pytest.raises(CredentialsError, match="trust-domain must contain only the trust domain of the mesh"):
        certificates.read(out)


def test_roots_must_not_contradict_the_given_trust_domain() -> None:
    """All roots are checked, because during a root change only one of two may name the domain."""
    now = datetime.now(UTC)
    foreign, own = ca("a", now), ca("b", now, domains=("cluster.local",))
    other = ca("c", now, domains=("other.example",))
    assert certificates.domain_of(foreign.pem + own.pem, None, "ca.pem") == MESHS
    assert certificates.domain_of(foreign.pem, MESHS, "ca.pem") == MESHS
    with pytest.raises(CredentialsError, match=r"ca\.pem names the trust domain other\.example, but the"):
        certificates.domain_of(foreign.pem + other.pem, MESHS, "ca.pem")
    with pytest.raises(CredentialsError, match=r"cluster\.local and other\.example, but all roots"):
        certificates.domain_of(own.pem + other.pem, None, "ca.pem")


def test_server_refuses_roots_of_another_trust_domain(tmp_path: Path) -> None:
    """An intermediate without a domain is checked by its root. Agents read the domain from the root."""
    put(tmp_path / "ca", intermediate=True, domains=("other.example",))
    with pytest.raises(StateError, match=r"are for spiffe://other\.example, not for spiffe://cluster\.local"):
        WatchedIssuer(WatchedFiles.within(tmp_path / "ca"), MESHS, datetime.now(UTC))


async def test_machine_keeps_its_trust_domain_when_the_mesh_moves_to_a_foreign_ca(
    serve: Serve, tmp_path: Path
) -> None:
    """The trust domain is stored on renewal, while roots still name it."""
    server = await serve(workload("one"), **PORTS)
    token = str((await server.ask("POST", "/certs/tokens", WANTED))["token"])
    machine = joining(server, tmp_path, token)
    await machine.enrolled.begin(machine.stop)
    (machine.folder / "trust-domain").unlink()  # as with an older agent
    await machine.enrolled._renew()
    foreign = ca("Company", datetime.now(UTC))
    bundle = TrustBundle.from_pems([(machine.folder / "ca.pem").read_bytes(), foreign.pem])
    (machine.folder / "ca.pem").write_bytes(bundle.pem)
    assert certificates.read(machine.folder).trust_domain == MESHS
    assert (machine.folder / "trust-domain").read_text() == "cluster.local\n"
