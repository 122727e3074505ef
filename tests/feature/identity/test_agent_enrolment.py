"""Tests of the agent's join and renewal against the whole server: files, requests, server identity."""

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
from tests.feature.identity.grpc_machine import JOIN, TOKEN, call, channel
from tests.feature.identity.test_enrolment import PORTS
from tests.feature.identity.test_identity import NAME, workload
from tests.tools.own_authority import own_authority

Serve = Callable[..., Awaitable[Any]]


@dataclass
class Joining:
    """The enrolment part of an agent with its files.

    With `apart` it makes requests in a subprocess, as an agent does. Otherwise it uses a thread, which is
    faster.
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
        """Create the enrolled certificate on the folder."""
        ask = None if self.apart else lambda asked: asyncio.to_thread(program.answer, asked)
        self.enrolled = EnrolledCertificate(self.settings, self.folder, self._replace, self.shown, ask=ask)

    def shown(self) -> Any:
        """Return the certificate in use."""
        peer_certificate = certificate(self.folder / "proxy.pem")
        return replace(
            peer_certificate,
            not_before=peer_certificate.not_before - self.ahead,
            not_after=peer_certificate.not_after - self.ahead,
        )

    async def _replace(self, change: Callable[[], None]) -> bool:
        change()
        certificates.read(self.folder)
        self.taken += not self.refuses
        return not self.refuses


def joining(server: Any, tmp_path: Path, token: str, *, apart: bool = False, **changes: Any) -> Joining:
    """Return an agent that joins a server with a token."""
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(f"{token}\n")
    fields = {
        "join": (server.bound.enrolment["enrolment"],),
        "renewal": (server.bound.enrolment["renewal"],),
        "proof": path,
    }
    return Joining(tmp_path / "credentials", EnrolmentSettings(**{**fields, **changes}), apart=apart)


async def _token(server: Any, **more: object) -> str:
    return str((await server.ask("POST", "/certs/tokens", {**TOKEN, "uuid": "one", **more}))["token"])


async def test_agent_joins_and_renews_at_the_server_that_answers(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first address of each list is a closed port; the agent uses the second one of a real server."""
    monkeypatch.setattr("meshwright.agent.server_rotation.random.randrange", lambda _: 0)
    server, closed = await serve(workload("one"), **PORTS), HostPort("127.0.0.1", 1)
    at = server.bound.enrolment
    join, renewal = (closed, at["enrolment"]), (closed, at["renewal"])
    machine = joining(server, tmp_path, await _token(server), join=join, renewal=renewal)
    with structlog.testing.capture_logs() as logs:
        await machine.enrolled.begin(machine.stop)
        first = certificates.read(machine.folder).serial
        await machine.enrolled._renew()
    assert certificates.read(machine.folder).serial != first
    passed_over = [log for log in logs if log["event"] == "request failed, but another server answered"]
    assert [(log["reason"], log["server"]) for log in passed_over] == [
        ("127.0.0.1:1 cannot be reached: Connection refused", str(at["enrolment"])),
        ("127.0.0.1:1 cannot be reached: Connection refused", str(at["renewal"])),
    ]


async def test_agent_joins_and_renews_with_a_new_private_key(serve: Serve, tmp_path: Path) -> None:
    """The credentials are private files that belong together, and each certificate has another key."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server), apart=True)
    await machine.enrolled.begin(machine.stop)
    first = certificates.read(machine.folder)
    assert str(first.name) == NAME
    assert sorted(path.name for path in machine.folder.iterdir()) == [
        "ca.pem",
        "joined",
        "proxy.key",
        "proxy.pem",
        "trust-domain",
    ]
    assert {path.stat().st_mode & 0o777 for path in machine.folder.iterdir()} == {0o600}
    assert machine.folder.stat().st_mode & 0o777 == 0o700
    await machine.enrolled._renew()
    second = certificates.read(machine.folder)
    assert (second.name, machine.taken) == (first.name, 1)
    assert second.serial != first.serial
    assert second.key != first.key
    await machine.enrolled.begin(machine.stop)
    assert certificates.read(machine.folder).serial == second.serial


async def test_new_token_starts_a_new_join(serve: Serve, tmp_path: Path) -> None:
    """Another token replaces the certificate. A refused one leaves the present certificate in use."""
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
    assert [log["event"] for log in logs if log["log_level"] == "error"] == [
        "join failed; the present certificate stays in use"
    ]
    assert certificates.read(machine.folder).serial == second


@pytest.mark.parametrize("away", [False, True])
async def test_useless_token_does_not_prevent_renewal(serve: Serve, tmp_path: Path, away: bool) -> None:
    """The token is refused or the server is unreachable.

    The certificate stays in use and is renewed when due.
    """
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server))
    await machine.enrolled.begin(machine.stop)
    first = certificates.read(machine.folder).serial
    assert machine.settings.proof is not None
    useless = await _token(server)
    machine.settings.proof.write_text(useless)
    await server.ask("POST", "/certs/tokens/revoke", {"token": useless.partition(".")[0]})
    if away:
        settings = replace(machine.settings, join=(HostPort("127.0.0.1", 1),))
        machine = Joining(machine.folder, settings)
    async with asyncio.timeout(60):
        await machine.enrolled.begin(machine.stop)
    assert certificates.read(machine.folder).serial == first
    assert (machine.enrolled._retry is not None) == away
    await machine.enrolled._renew()
    assert certificates.read(machine.folder).serial == first  # the renewal is not due
    machine.enrolled._renew_after = datetime.now(UTC)
    with structlog.testing.capture_logs() as logs:
        await machine.enrolled._renew()
    answer = [log["event"] for log in logs]
    assert "new join failed; the present certificate was renewed instead" in answer
    assert "certificate not renewed" not in answer
    assert certificates.read(machine.folder).serial != first


async def test_revoked_agent_joins_with_a_new_token_without_a_restart(serve: Serve, tmp_path: Path) -> None:
    """The new token causes a join although the certificate is not due. The old token causes none."""
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


async def test_token_file_removed_during_the_join_loses_nothing(serve: Serve, tmp_path: Path) -> None:
    """The id of the presented token is recorded, although the file is gone by then."""
    server = await serve(workload("one"), **PORTS)
    token = await _token(server)
    machine = joining(server, tmp_path, token)
    joined = await machine.enrolled._call_program(EnrolmentRequestKind.JOIN)
    assert isinstance(joined, EnrolmentResult)
    (tmp_path / "token").unlink()
    await machine.enrolled._put_joined(joined)
    assert files.joined_by(machine.folder) == token.partition(".")[0]
    assert str(certificates.read(machine.folder).name) == NAME


async def test_unchecked_certificate_does_not_stop_renewal(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the subprocess that reads certificates fails, for example without memory, the agent still renews."""
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
        (f"0123456789ab.{'s' * 43}", r"the join token lacks a pin; give a file with the root \(--ca\)"),
        (
            f"0123456789ab.{'s' * 43}.{'0' * 64}",
            (
                "presents roots that do not match the pin in the join token: the token belongs to "
                "another mesh, or the server is not the control plane. The token was not sent"
            ),
        ),
    ],
)
async def test_unusable_token_ends_the_agent_with_a_reason(
    serve: Serve, tmp_path: Path, token: str, words: str
) -> None:
    """The message does not repeat the secret. A pin that no root matches means another mesh."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, token)
    with pytest.raises(AgentError, match=f"^this machine cannot join: .*{words}") as refused:
        await machine.enrolled.begin(machine.stop)
    assert "sss" not in str(refused.value)


async def test_refused_agent_is_referred_to_the_server_log(serve: Serve, tmp_path: Path) -> None:
    """The server's answer has no details. A token file that others can read is not sent at all."""
    server = await serve(workload("one"), **PORTS)
    token = await _token(server)
    await server.ask("POST", "/certs/tokens/revoke", {"token": token.partition(".")[0]})
    machine = joining(server, tmp_path, token)
    with pytest.raises(AgentError, match="has refused the request; see the log of the server"):
        await machine.enrolled.begin(machine.stop)
    (tmp_path / "token").chmod(0o644)
    answered = await machine.enrolled._call_program(EnrolmentRequestKind.JOIN)
    assert isinstance(answered, EnrolmentFailure)
    assert "can be read by other users" in answered.why


async def test_token_without_a_pin_joins_with_a_root_file(serve: Serve, tmp_path: Path) -> None:
    """A root file, also with a comment in UTF-8, replaces the pin."""
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
    """Run a server with this certificate between a machine and the real server.

    Yield address and requests.
    """
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


async def test_join_request_contains_no_private_key(serve: Serve, tmp_path: Path) -> None:
    """The decrypted request has the public key, but no form of the private key, and no name."""
    server = await serve(workload("one"), **PORTS)
    shown = ads_server_certificate(server.authority, PairFiles(tmp_path / "other"), datetime.now(UTC))
    chain = shown.chain_pem + server.authority.trust_bundle()
    async with between(chain, shown.key.reveal(), server) as (at, seen):
        machine = joining(server, tmp_path, await _token(server), join=(at,))
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


async def test_man_in_the_middle_gets_no_join_token(serve: Serve, tmp_path: Path) -> None:
    """With another CA, also with our root appended, the agent sends nothing."""
    server = await serve(workload("one"), **PORTS)
    token = await _token(server)
    other = own_authority(tmp_path / "other", TrustDomain("cluster.local"), datetime.now(UTC))
    shown = ads_server_certificate(other, PairFiles(tmp_path / "other"), datetime.now(UTC))
    ours = server.authority.trust_bundle()
    for chain, words in (
        (
            shown.chain_pem + other.trust_bundle(),
            (
                "presents roots that do not match the pin in the join token: the token belongs to "
                "another mesh, or the server is not the control plane. The token was not sent"
            ),
        ),
        (shown.chain_pem + other.trust_bundle() + ours, "is not trusted: "),
    ):
        async with between(chain, shown.key.reveal(), server) as (at, seen):
            machine = joining(server, tmp_path, token, join=(at,))
            answered = await machine.enrolled._call_program(EnrolmentRequestKind.JOIN)
        assert isinstance(answered, EnrolmentFailure)
        assert words in answered.why
        assert seen == []


async def test_workload_cannot_impersonate_the_control_plane(serve: Serve, tmp_path: Path) -> None:
    """A service certificate with a forged root, also with our root appended, gets no request."""
    server = await serve(workload("one"), **PORTS)
    now, ours = datetime.now(UTC), server.authority.trust_bundle()
    names = Names("ads", dns_names=("ads.shop.svc.cluster.local",))
    held = issue_pair(server.authority, Usage.SERVICE, names, timedelta(hours=1), now)
    root = x509.load_pem_x509_certificate(ours)
    forged = x509.CertificateBuilder(root.issuer, root.subject, root.public_key(), root.serial_number)
    forged = forged.not_valid_before(root.not_valid_before_utc).not_valid_after(root.not_valid_after_utc)
    domain = x509.SubjectAlternativeName([x509.UniformResourceIdentifier("spiffe://shop.svc.cluster.local")])
    for extension in root.extensions:
        own = isinstance(extension.value, x509.SubjectAlternativeName)
        forged = forged.add_extension(domain if own else extension.value, extension.critical)
    shown = forged.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    chain = held.chain_pem + shown.public_bytes(serialization.Encoding.PEM)
    for more, words in (
        (
            b"",
            (
                "presents roots that do not match the pin in the join token: the token belongs to "
                "another mesh, or the server is not the control plane. The token was not sent"
            ),
        ),
        (ours, "is not trusted: "),
    ):
        async with between(chain + more, held.key.reveal(), server) as (at, seen):
            machine = joining(server, tmp_path, await _token(server), join=(at,))
            answered = await machine.enrolled._call_program(EnrolmentRequestKind.JOIN)
        assert isinstance(answered, EnrolmentFailure), answered
        assert words in answered.why
        assert seen == []


@pytest.mark.parametrize("hours", [-1, 1])
async def test_clock_that_is_an_hour_off_is_reported(serve: Serve, tmp_path: Path, hours: int) -> None:
    """The server's certificate is not valid yet, or has expired, and the message advises to set the clock."""
    server = await serve(workload("one"), **PORTS)
    life = timedelta(hours=1) if hours > 0 else VALIDITY + timedelta(hours=1)
    at_their = datetime.now(UTC) + (life if hours > 0 else -life)
    shown = ads_server_certificate(server.authority, PairFiles(tmp_path / "other"), at_their)
    chain = shown.chain_pem + server.authority.trust_bundle()
    async with between(chain, shown.key.reveal(), server) as (at, seen):
        machine = joining(server, tmp_path, await _token(server), join=(at,))
        answered = await machine.enrolled._call_program(EnrolmentRequestKind.JOIN)
    assert isinstance(answered, EnrolmentFailure)
    text = (
        r"the certificate of \S+ is not valid now: it is valid from \S+ to \S+, and the clock of this "
        r"machine shows \S+; set the clock if it is wrong"
    )
    assert re.search(text, answered.why), answered.why
    assert (seen, answered.refused) == ([], False)


async def test_unusable_certificate_is_requested_again_later(serve: Serve, tmp_path: Path) -> None:
    """Retries are delayed, also if a clock far ahead makes the new certificate due at once."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server))
    await machine.enrolled.begin(machine.stop)
    machine.refuses = True
    with structlog.testing.capture_logs() as logs:
        await machine.enrolled._renew()
    (answer,) = [log for log in logs if log["event"] == "certificate not renewed"]
    assert answer["again_in"] >= 2.5
    assert machine.enrolled._retry is not None
    machine.refuses = False
    machine.ahead = timedelta(days=60)
    await machine.enrolled._renew()
    assert machine.enrolled._retry > monotonic() + 30


async def test_unreachable_server_is_retried_until_a_stop(serve: Serve, tmp_path: Path) -> None:
    """A stop ends the retries, and no pair was written."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server), join=(HostPort("127.0.0.1", 1),))
    with structlog.testing.capture_logs() as logs:
        beginning = asyncio.create_task(machine.enrolled.begin(machine.stop))
        async with asyncio.timeout(60):
            while not [log for log in logs if log["event"] == "join failed; the agent tries again"]:
                await asyncio.sleep(0.01)
        machine.stop.set()
        await beginning
    assert "cannot be reached: Connection refused" in logs[0]["reason"]
    assert not files.has_pair(machine.folder)


async def test_lost_join_answer_is_requested_again_with_the_same_key(serve: Serve, tmp_path: Path) -> None:
    """The second request has the same key, so a token is used only once."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server))
    lost = await machine.enrolled._call_program(EnrolmentRequestKind.JOIN)
    assert isinstance(lost, EnrolmentResult)
    await machine.enrolled.begin(machine.stop)
    assert str(certificates.read(machine.folder).name) == NAME
    (listed,) = (await server.ask("GET", "/certs/tokens"))["join_tokens"]
    assert listed["used"] == 1


async def test_changed_roots_are_stored_and_confirmed(serve: Serve, tmp_path: Path) -> None:
    """The agent reports its roots, gets the current ones, and reports those in its next request."""
    server = await serve(workload("one"), **PORTS)
    machine = joining(server, tmp_path, await _token(server))
    await machine.enrolled.begin(machine.stop)
    whole = (machine.folder / "ca.pem").read_bytes()
    (machine.folder / "ca.pem").write_bytes(whole + b"\n")
    assert await machine.enrolled._trust() == timedelta(seconds=1)
    assert ((machine.folder / "ca.pem").read_bytes(), machine.taken) == (whole, 1)
    assert await machine.enrolled._trust() >= timedelta(minutes=7)
    assert machine.taken == 1
