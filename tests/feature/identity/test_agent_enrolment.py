"""The agent's own side of joining and renewal, against the whole server: files, wire, whom it believes."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certs.contract import Names, Usage
from certs.issuers.authority import CertificateAuthority
from certs.keys.pair import issue_pair
from certs.server import VALIDITY, ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.agent import certificates
from meshwright.agent import credential_check as reading
from meshwright.agent.certificates import certificate
from meshwright.agent.enrolment import files, program
from meshwright.agent.enrolment.certificate_keeper import EnrolledCertificate, monotonic
from meshwright.agent.enrolment.settings import (
    EnrolmentFailure,
    EnrolmentRequestKind,
    EnrolmentResult,
    EnrolmentSettings,
)
from meshwright.agent.errors import AgentError
from meshwright.agent.subprocess_call import ApartFailed
from meshwright.enrolment.tokens import read_token
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain
from tests.feature.identity.enrolling import JOIN, TOKEN, call, channel
from tests.feature.identity.test_enrolment import PORTS
from tests.feature.identity.test_identity import NAME, workload

Serve = Callable[..., Awaitable[Any]]


@dataclass
class Joining:
    """An agent's part that joins, with the files that it keeps.

    `apart`: it asks in a process that ends, as an agent does; here that is the same, and takes no second.
    """

    folder: Path
    settings: EnrolmentSettings
    enrolled: EnrolledCertificate = field(init=False)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    taken: int = 0
    apart: bool = False
    refuses: bool = False
    ahead: timedelta = timedelta()

    def __post_init__(self) -> None:
        """Take files into use by looking at them."""
        ask = None if self.apart else lambda asked: asyncio.to_thread(program.answer, asked)
        self.enrolled = EnrolledCertificate(self.settings, self.folder, self._replace, self.shown, ask=ask)

    def shown(self) -> Any:
        """Return the certificate in use."""
        found = certificate(self.folder / "proxy.pem")
        return replace(
            found, not_before=found.not_before - self.ahead, not_after=found.not_after - self.ahead
        )

    async def _replace(self, change: Callable[[], None]) -> bool:
        change()
        certificates.read(self.folder)
        self.taken += not self.refuses
        return not self.refuses


def joining(server: Any, tmp_path: Path, token: str, *, apart: bool = False, **changes: Any) -> Joining:
    """Return one that joins a server by a token."""
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(f"{token}\n")
    told = {
        "join": server.bound.enrolment["enrolment"],
        "renewal": server.bound.enrolment["renewal"],
        "proof": path,
    }
    return Joining(tmp_path / "credentials", EnrolmentSettings(**{**told, **changes}), apart=apart)


async def _token(server: Any, **more: object) -> str:
    return str((await server.ask("POST", "/certs/tokens", {**TOKEN, "uuid": "one", **more}))["token"])


async def test_it_joins_renews_and_keeps_its_key_for_itself(serve: Serve, tmp_path: Path) -> None:
    """Three files that fit, its own modes, nothing left over; another key with each certificate."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server), apart=True)
    await machine.enrolled.begin(machine.stop)
    first = certificates.read(machine.folder)
    assert str(first.name) == NAME
    assert sorted(each.name for each in machine.folder.iterdir()) == [
        "ca.pem",
        "joined",
        "proxy.key",
        "proxy.pem",
        "trust-domain",
    ]
    assert {each.stat().st_mode & 0o777 for each in machine.folder.iterdir()} == {0o600}
    assert machine.folder.stat().st_mode & 0o777 == 0o700
    await machine.enrolled._renew()
    second = certificates.read(machine.folder)
    assert (second.name, machine.taken) == (first.name, 1)
    assert second.serial != first.serial
    assert second.key != first.key
    await machine.enrolled.begin(machine.stop)
    assert certificates.read(machine.folder).serial == second.serial


async def test_another_token_is_for_joining_again(serve: Serve, tmp_path: Path) -> None:
    """So is an end that has passed; one that is refused leaves what there is."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server))
    await machine.enrolled.begin(machine.stop)
    first = certificates.read(machine.folder).serial
    machine.settings.proof.write_text(await _token(server))  # type: ignore[union-attr]
    await machine.enrolled.begin(machine.stop)
    second = certificates.read(machine.folder).serial
    assert first != second
    spent = (tmp_path / "token").read_text()
    files.note_joined(machine.folder, "000000000000")
    await server.ask("POST", "/certs/tokens/revoke", {"token": spent.partition(".")[0]})
    with structlog.testing.capture_logs() as logs:
        await machine.enrolled.begin(machine.stop)
    assert [each["event"] for each in logs if each["log_level"] == "error"] == [
        "join failed; the present certificate stays in use"
    ]
    assert certificates.read(machine.folder).serial == second


@pytest.mark.parametrize("away", [False, True])
async def test_a_token_that_does_not_let_in_keeps_no_certificate_from_being_renewed(
    serve: Serve, tmp_path: Path, away: bool
) -> None:
    """Whether it is refused or nobody answers; the machine goes on with what it has at a start, too."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server))
    await machine.enrolled.begin(machine.stop)
    first = certificates.read(machine.folder).serial
    assert machine.settings.proof is not None
    useless = await _token(server)
    machine.settings.proof.write_text(useless)
    await server.ask("POST", "/certs/tokens/revoke", {"token": useless.partition(".")[0]})
    if away:
        settings = replace(machine.settings, join=HostPort("127.0.0.1", 1))
        machine = Joining(machine.folder, settings)
    async with asyncio.timeout(60):
        await machine.enrolled.begin(machine.stop)
    assert certificates.read(machine.folder).serial == first
    assert (machine.enrolled._retry is not None) == away
    await machine.enrolled._renew()
    assert certificates.read(machine.folder).serial == first  # it is not due
    machine.enrolled._renew_after = datetime.now(UTC)
    with structlog.testing.capture_logs() as logs:
        await machine.enrolled._renew()
    said = [each["event"] for each in logs]
    assert "new join failed; the present certificate was renewed instead" in said
    assert "certificate not renewed" not in said
    assert certificates.read(machine.folder).serial != first


async def test_who_was_revoked_joins_by_a_new_token_without_a_restart(serve: Serve, tmp_path: Path) -> None:
    """Although its certificate is not due for long; by the token that it has it does not."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server))
    await machine.enrolled.begin(machine.stop)
    first = certificates.read(machine.folder).serial
    await server.ask("POST", "/certs/revoke", {"serial": first})
    await machine.enrolled._trust()
    before = machine.enrolled._retry
    (tmp_path / "token").write_text(await _token(server))
    await machine.enrolled._trust()
    after = machine.enrolled._retry
    assert before is None
    assert after is not None
    assert after <= monotonic()
    await machine.enrolled._renew()
    assert certificates.read(machine.folder).serial != first
    assert await machine.enrolled._trust() >= timedelta(minutes=7)


async def test_a_token_that_is_gone_by_the_time_of_the_answer_loses_nothing(
    serve: Serve, tmp_path: Path
) -> None:
    """Its id is noted as of the token that was shown, whatever stands there then."""
    server = await serve(workload("one"), **PORTS)
    token = await _token(server)
    machine = joining(server, tmp_path, token)
    joined = await machine.enrolled._asked(EnrolmentRequestKind.JOIN)
    assert isinstance(joined, EnrolmentResult)
    (tmp_path / "token").unlink()
    await machine.enrolled._put_joined(joined)
    assert files.joined_by(machine.folder) == token.partition(".")[0]
    assert str(certificates.read(machine.folder).name) == NAME


async def test_a_certificate_that_nobody_judged_ends_no_renewal(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that has no memory for the program that reads it renews it, and keeps its Envoy."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server))
    await machine.enrolled.begin(machine.stop)
    first = certificates.read(machine.folder).serial

    async def read(*_: object, **__: object) -> None:
        raise ApartFailed("the subprocess that reads certificates took more than 60 s")

    monkeypatch.setattr(reading, "read", read)
    await machine.enrolled._renew()
    assert certificates.read(machine.folder).serial != first


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (
            "no token",
            (
                "the file with the join token cannot be used: the text is not a join token: "
                r"must be <id>\.<secret>\[\.<pin>\.\.\.\] on one line"
            ),
        ),
        (f"0123456789ab.{'s' * 43}", r"the join token has no pin; give a file with the root \(--ca\)"),
        (
            f"0123456789ab.{'s' * 43}.{'0' * 64}",
            (
                "presents no root that matches the pin in the join token: the token belongs to "
                "another mesh, or the server is not the control plane. The token was not sent"
            ),
        ),
    ],
)
async def test_a_token_of_no_use_ends_it_with_a_sentence(
    serve: Serve, tmp_path: Path, token: str, words: str
) -> None:
    """Which repeats nothing of it; of another mesh is one whose pin nobody shows."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, token)
    with pytest.raises(AgentError, match=f"^this machine cannot join: .*{words}") as refused:
        await machine.enrolled.begin(machine.stop)
    assert "sss" not in str(refused.value)


async def test_a_refused_one_is_told_where_to_look(serve: Serve, tmp_path: Path) -> None:
    """A stranger is told no more; a file that others can read is not shown to anybody."""
    server = await serve(workload("one"), **PORTS)
    token = await _token(server)
    await server.ask("POST", "/certs/tokens/revoke", {"token": token.partition(".")[0]})
    machine = joining(server, tmp_path, token)
    with pytest.raises(AgentError, match="has refused the request; see the log of the server"):
        await machine.enrolled.begin(machine.stop)
    (tmp_path / "token").chmod(0o644)
    answered = await machine.enrolled._asked(EnrolmentRequestKind.JOIN)
    assert isinstance(answered, EnrolmentFailure)
    assert "can be read by other users" in answered.why


async def test_by_a_root_from_a_file_a_token_needs_no_pin(serve: Serve, tmp_path: Path) -> None:
    """As where a mesh's root is on its machines already, with a name above it as bundles have them."""
    server = await serve(workload("one"), **PORTS)
    token = read_token(await _token(server))
    root = tmp_path / "root.pem"
    root.write_bytes("# Főtanúsítvány\n".encode() + server.authority.trust_bundle())
    machine = joining(server, tmp_path, f"{token.id}.{token.secret}", authority=root)
    await machine.enrolled.begin(machine.stop)
    assert str(certificates.read(machine.folder).name) == NAME


@asynccontextmanager
async def between(
    chain: bytes, key: bytes, server: Any = None
) -> AsyncIterator[tuple[HostPort, list[bytes]]]:
    """Stand between a machine and a server with this certificate; yield where, and requests as they came."""
    seen: list[bytes] = []

    async def join(request: bytes, _: grpc.aio.ServicerContext) -> bytes:
        seen.append(request)
        async with channel(server, "enrolment") as opened:
            return (await call(opened, JOIN, request)).message

    service, _, method = JOIN[1:].rpartition("/")
    handlers = {method: grpc.unary_unary_rpc_method_handler(join)}
    standing = grpc.aio.server()
    standing.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = standing.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, chain)]))
    await standing.start()
    try:
        yield HostPort("127.0.0.1", port), seen
    finally:
        await standing.stop(1)


async def test_no_key_is_in_what_is_sent(serve: Serve, tmp_path: Path) -> None:
    """In clear, as only who has the mesh's own certificate can see it: no form of the key, and no name."""
    server = await serve(workload("one"), **PORTS)
    shown = ads_server_certificate(server.authority, PairFiles(tmp_path / "other"), datetime.now(UTC))
    chain = shown.chain_pem + server.authority.trust_bundle()
    async with between(chain, shown.key.reveal(), server) as (at, seen):
        machine = joining(server, tmp_path, await _token(server), join=at)
        await machine.enrolled.begin(machine.stop)
    (request,) = seen
    pem = (machine.folder / "proxy.key").read_bytes()
    key = serialization.load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    number = key.private_numbers().private_value.to_bytes(32)
    for secret in (number, number[::-1], pem.splitlines()[1], b"PRIVATE KEY"):
        for form in (secret, secret.hex().encode(), base64.b64encode(secret), base64.b64encode(secret)[4:-4]):
            assert form not in request
    public = serialization.PublicFormat.UncompressedPoint
    assert key.public_key().public_bytes(serialization.Encoding.X962, public) in request
    assert NAME.encode() not in request


async def test_who_stands_between_is_not_shown_the_secret(serve: Serve, tmp_path: Path) -> None:
    """With another CA, and with another CA that shows our root besides: nothing is said to it."""
    server = await serve(workload("one"), **PORTS)
    token = await _token(server)
    other = CertificateAuthority.open(tmp_path / "other", TrustDomain("cluster.local"), datetime.now(UTC))
    shown = ads_server_certificate(other, PairFiles(tmp_path / "other"), datetime.now(UTC))
    ours = server.authority.trust_bundle()
    for chain, words in (
        (
            shown.chain_pem + other.trust_bundle(),
            (
                "presents no root that matches the pin in the join token: the token belongs to "
                "another mesh, or the server is not the control plane. The token was not sent"
            ),
        ),
        (shown.chain_pem + other.trust_bundle() + ours, "is not trusted: "),
    ):
        async with between(chain, shown.key.reveal(), server) as (at, seen):
            machine = joining(server, tmp_path, token, join=at)
            answered = await machine.enrolled._asked(EnrolmentRequestKind.JOIN)
        assert isinstance(answered, EnrolmentFailure)
        assert words in answered.why
        assert seen == []


async def test_a_workload_cannot_pass_for_the_control_plane(serve: Serve, tmp_path: Path) -> None:
    """Nor with a root of our root's key and name, and the trust domain by which its own name is right."""
    server = await serve(workload("one"), **PORTS)
    now, ours = datetime.now(UTC), server.authority.trust_bundle()
    names = Names("ads", dns_names=("ads.shop.svc.cluster.local",))
    held = issue_pair(server.authority, Usage.SERVICE, names, timedelta(hours=1), now)
    root = x509.load_pem_x509_certificate(ours)
    forged = x509.CertificateBuilder(root.issuer, root.subject, root.public_key(), root.serial_number)
    forged = forged.not_valid_before(root.not_valid_before_utc).not_valid_after(root.not_valid_after_utc)
    domain = x509.SubjectAlternativeName([x509.UniformResourceIdentifier("spiffe://shop.svc.cluster.local")])
    for each in root.extensions:
        own = isinstance(each.value, x509.SubjectAlternativeName)
        forged = forged.add_extension(domain if own else each.value, each.critical)
    shown = forged.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    chain = held.chain_pem + shown.public_bytes(serialization.Encoding.PEM)
    for more, words in (
        (
            b"",
            (
                "presents no root that matches the pin in the join token: the token belongs to "
                "another mesh, or the server is not the control plane. The token was not sent"
            ),
        ),
        (ours, "is not trusted: "),
    ):
        async with between(chain + more, held.key.reveal(), server) as (at, seen):
            machine = joining(server, tmp_path, await _token(server), join=at)
            answered = await machine.enrolled._asked(EnrolmentRequestKind.JOIN)
        assert isinstance(answered, EnrolmentFailure), answered
        assert words in answered.why
        assert seen == []


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_is_an_hour_off_is_said(serve: Serve, tmp_path: Path, hours: int) -> None:
    """Here it is the server's certificate that begins in an hour, or ended an hour ago."""
    server = await serve(workload("one"), **PORTS)
    life = timedelta(hours=1) if hours > 0 else VALIDITY + timedelta(hours=1)
    at_their = datetime.now(UTC) + (life if hours > 0 else -life)
    shown = ads_server_certificate(server.authority, PairFiles(tmp_path / "other"), at_their)
    chain = shown.chain_pem + server.authority.trust_bundle()
    async with between(chain, shown.key.reveal(), server) as (at, seen):
        machine = joining(server, tmp_path, await _token(server), join=at)
        answered = await machine.enrolled._asked(EnrolmentRequestKind.JOIN)
    assert isinstance(answered, EnrolmentFailure)
    said = (
        r"the certificate of \S+ is not valid now: it is valid from \S+ to \S+, and the clock of this "
        r"machine shows \S+; set the clock if it is wrong"
    )
    assert re.search(said, answered.why), answered.why
    assert (seen, answered.refused) == ([], False)


async def test_what_cannot_be_used_is_tried_again_later(serve: Serve, tmp_path: Path) -> None:
    """And not at once, for ever; nor is a new certificate that a clock far ahead finds due."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server))
    await machine.enrolled.begin(machine.stop)
    machine.refuses = True
    with structlog.testing.capture_logs() as logs:
        await machine.enrolled._renew()
    (said,) = [each for each in logs if each["event"] == "certificate not renewed"]
    assert said["again_in"] >= 2.5
    assert machine.enrolled._retry is not None
    machine.refuses = False
    machine.ahead = timedelta(days=60)
    await machine.enrolled._renew()
    assert machine.enrolled._retry > monotonic() + 30


async def test_who_cannot_be_reached_is_tried_again(serve: Serve, tmp_path: Path) -> None:
    """Until it is told to stop; then no certificate was made, and the key waits."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server), join=HostPort("127.0.0.1", 1))
    with structlog.testing.capture_logs() as logs:
        beginning = asyncio.create_task(machine.enrolled.begin(machine.stop))
        async with asyncio.timeout(60):
            while not [each for each in logs if each["event"] == "join failed; the agent tries again"]:
                await asyncio.sleep(0.01)
        machine.stop.set()
        await beginning
    assert "cannot be reached: Connection refused" in logs[0]["reason"]
    assert not files.has_pair(machine.folder)


async def test_an_answer_that_was_lost_is_asked_for_again(serve: Serve, tmp_path: Path) -> None:
    """With the same key: of a token of one use nothing more is used."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server))
    lost = await machine.enrolled._asked(EnrolmentRequestKind.JOIN)
    assert isinstance(lost, EnrolmentResult)
    await machine.enrolled.begin(machine.stop)
    assert str(certificates.read(machine.folder).name) == NAME
    (listed,) = (await server.ask("GET", "/certs/tokens"))["join_tokens"]
    assert listed["used"] == 1


async def test_roots_that_changed_are_taken_and_confirmed(serve: Serve, tmp_path: Path) -> None:
    """It says what it has, is told what it lacks, and then says that it has it."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server))
    await machine.enrolled.begin(machine.stop)
    whole = (machine.folder / "ca.pem").read_bytes()
    (machine.folder / "ca.pem").write_bytes(whole + b"\n")
    assert await machine.enrolled._trust() == timedelta(seconds=1)
    assert ((machine.folder / "ca.pem").read_bytes(), machine.taken) == (whole, 1)
    assert await machine.enrolled._trust() >= timedelta(minutes=7)
    assert machine.taken == 1
