"""Tests of joining by token and of renewal, over real sockets against the whole server."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
import structlog
from cryptography import x509

from certs.keys.leaf import read_leaf
from certs.keys.material import PrivateKey
from certs.keys.pair import matched_pair
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.controller.process.logs import redact
from meshwright.enrolment.limits import EnrolmentLimits
from meshwright.enrolment.methods import JOINING
from meshwright.enrolment.server import EnrolmentPort
from meshwright.enrolment.store.sqlite import TOKENS_FILE, SqliteTokens
from meshwright.enrolment.tokens import JoinToken, TokenRequest, recorded
from meshwright.mesh.names import TrustDomain
from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire
from tests.feature.identity.grpc_machine import (
    EJECT,
    JOIN,
    RENEW,
    TOKEN,
    TRUST,
    Answered,
    Machine,
    call,
    channel,
    join,
    renew,
)
from tests.feature.identity.test_identity import NAME, workload
from tests.tools.own_authority import own_authority
from xds.server.tls import TlsIdentity

Serve = Callable[..., Awaitable[Any]]
PORTS = {"enrolment_address": "127.0.0.1:0", "renewal_address": "127.0.0.1:0"}
STRANGER = Answered(
    grpc.StatusCode.PERMISSION_DENIED, "the request is refused: see the log of the control plane", ("date",)
)
"""All that a stranger is told, whatever was wrong with the proof."""


async def _token(server: Any, **more: object) -> str:
    made = await server.ask("POST", "/certs/tokens", {**TOKEN, **more})
    return str(made["token"])


def _name(answered: Answered) -> str:
    return read_leaf(answered.certificate.chain_pem).names.common_name


async def test_machine_joins_renews_and_is_revoked(serve: Serve) -> None:
    """The certificate has the token's name, whatever the request asks for. A revoked one is not renewed."""
    server = await serve(workload("one"), **PORTS)
    machine = Machine()
    joined = await join(server, machine, await _token(server, uuid="one"))
    leaf = read_leaf(joined.certificate.chain_pem)
    assert (leaf.names.common_name, leaf.names.alternatives) == (NAME, ((), (), ()))
    assert joined.certificate.trust_bundle_pem == server.authority.trust_bundle()
    assert joined.certificate.not_after.ToDatetime(UTC) == leaf.not_after
    first = machine.pair(joined.certificate)
    async with server.client(first) as client:
        await client.ask(NAME)
        assert await client.names()
    again = Machine()
    renewed = await renew(server, first, again)
    second = again.pair(renewed.certificate)
    assert _name(renewed) == NAME
    assert second.leaf.serial != first.leaf.serial
    entries = (await server.ask("GET", "/debug/certs"))["proxy_certificates"]
    assert {entry["serial"] for entry in entries} == {first.leaf.serial, second.leaf.serial}
    await server.ask("POST", "/certs/revoke", {"serial": first.leaf.serial})
    refused = await renew(server, first, Machine())
    assert (refused.code, refused.reason) == (grpc.StatusCode.PERMISSION_DENIED, "revoked")
    assert (await renew(server, second, Machine())).code is grpc.StatusCode.OK
    counted = "meshwright_enrolment_requests_total"
    for method, result, count in (("Join", "ok", 1), ("Renew", "ok", 2), ("Renew", "refused", 1)):
        assert await server.metric(f'{counted}{{method="{method}",result="{result}"}}') == count


def _days(answered: Answered) -> int:
    """Return the remaining days of a new certificate, rounded."""
    left = answered.certificate.not_after.ToDatetime(UTC) - datetime.now(UTC)
    return round(left / timedelta(days=1))


async def test_renewal_keeps_the_requested_validity(serve: Serve) -> None:
    """Each renewal has the validity of the token or of the first certificate, otherwise of the setting."""
    server = await serve(workload("one"), **PORTS, proxy_certificate_days=30)
    two, three = Machine(), Machine()
    issued = await server.ask(
        "POST",
        "/certs/issue-proxy",
        {"uuid": "one", "service": "store", "namespace": "shop", "validity_days": 3},
    )
    by_hand = matched_pair(issued["chain_pem"].encode(), PrivateKey(issued["key_pem"].encode()))
    by_token = two.pair((await join(server, two, await _token(server, days=7))).certificate)
    for first, days in ((by_hand, 3), (by_token, 7)):
        holder = first
        for machine in (Machine(), Machine()):
            renewed = await renew(server, holder, machine)
            assert _days(renewed) == days
            holder = machine.pair(renewed.certificate)
    unasked = await join(server, three, await _token(server))
    assert _days(unasked) == 30
    assert _days(await renew(server, three.pair(unasked.certificate), Machine())) == 30
    entries = (await server.ask("GET", "/debug/certs"))["proxy_certificates"]
    day = 86400
    assert [entry["term_seconds"] for entry in entries if entry["cn"] == NAME] == [3 * day] * 3
    assert sum(entry["term_seconds"] == 7 * day for entry in entries) == 3
    assert {entry["term_seconds"] for entry in entries} == {3 * day, 7 * day, None}


async def test_revoked_machine_cannot_join_again_with_the_same_token(serve: Serve) -> None:
    """Another machine can still use the token. The revoked machine needs a token that is created later."""
    server = await serve(**PORTS)
    machine, many, bound = (
        Machine(),
        await _token(server, uses=5),
        await _token(server, uuid="one", anyway=True),
    )
    joined = await join(server, machine, many)
    renewed = await renew(server, machine.pair(joined.certificate), Machine())
    one = Machine()
    await join(server, one, bound)
    entries = (await server.ask("GET", "/debug/certs"))["proxy_certificates"]
    ids = {item: f"join-token {item.partition('.')[0]}" for item in (many, bound)}
    assert sorted(entry["joined_by"] for entry in entries) == sorted((ids[many], ids[many], ids[bound]))
    # Revoking the renewed certificate is enough, because both came from the same token.
    serials = [read_leaf(renewed.certificate.chain_pem).serial]
    serials += [entry["serial"] for entry in entries if entry["cn"] == NAME]
    for serial in serials:
        await server.ask("POST", "/certs/revoke", {"serial": serial})
    for who, token in ((machine, many), (one, bound)):
        with structlog.testing.capture_logs() as logs:
            assert await join(server, who, token) == STRANGER
        assert [log["reason"] for log in logs if log["event"] == "join refused"] == ["proxy_revoked"]
    assert (await join(server, Machine(), many)).code is grpc.StatusCode.OK
    (listed,) = [
        join_token
        for join_token in (await server.ask("GET", "/certs/tokens"))["join_tokens"]
        if join_token["uses"] == 5
    ]
    assert listed["used"] == 2
    for who, more in ((machine, {}), (one, {"uuid": "one", "anyway": True})):
        assert (await join(server, who, await _token(server, **more))).code is grpc.StatusCode.OK


async def test_unused_older_token_cannot_restore_a_revoked_name(serve: Serve) -> None:
    """A token from before the revocation refuses the revoked machine, but admits others.

    The reason is that the revoked machine may hold that token.
    """
    server = await serve(**PORTS)
    _put(server)  # created two hours ago
    machine = Machine()
    joined = await join(server, machine, await _token(server))
    await server.ask("POST", "/certs/revoke", {"serial": read_leaf(joined.certificate.chain_pem).serial})
    assert await join(server, machine, f"0123456789ab.{'s' * 43}") == STRANGER
    assert (await join(server, Machine(), f"0123456789ab.{'s' * 43}")).code is grpc.StatusCode.OK


async def test_cancelled_join_requests_use_a_token_only_once(serve: Serve) -> None:
    """After five cancelled requests the machine joins with the same key, and one use is counted."""
    server = await serve(**PORTS)
    token, machine = await _token(server), Machine()
    async with channel(server, "enrolment") as opened:
        for _ in range(5):
            made = opened.unary_unary(JOIN)(machine.joining(token), timeout=60)
            await asyncio.sleep(0)
            made.cancel()
        async with asyncio.timeout(60):
            # A refusal here means that another request of the same key is in progress.
            while (
                answered := await call(opened, JOIN, machine.joining(token))
            ).code is not grpc.StatusCode.OK:
                assert answered.code in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
                await asyncio.sleep(0.5)
    (listed,) = (await server.ask("GET", "/certs/tokens"))["join_tokens"]
    assert listed["used"] == 1


async def test_multi_use_token_gives_each_machine_its_own_name(serve: Serve) -> None:
    """The UUID follows from the machine's key, so a repeated join has the same name and costs no use."""
    server = await serve(**PORTS)
    token, machine = await _token(server, uses=2), Machine()
    names = [_name(await join(server, item, token)) for item in (machine, Machine(), machine)]
    assert names[0] == names[2] != names[1]
    assert {name.partition(".")[2] for name in names} == {"store.shop"}
    (listed,) = (await server.ask("GET", "/certs/tokens"))["join_tokens"]
    assert (listed["used"], listed["uses"], listed["state"]) == (2, 2, "used up")


def _put(server: Any, *, valid: timedelta = timedelta(days=1), **changes: object) -> JoinToken:
    """Store a token that was created two hours ago."""
    token = JoinToken("0123456789ab", "s" * 43)
    made = datetime.now(UTC) - timedelta(hours=2)
    with SqliteTokens.open(server.state / TOKENS_FILE) as store:
        store.add(token, recorded(TokenRequest("store", "shop", valid=valid), token.id, "somebody", made))
    return token


async def test_refused_join_has_its_reason_in_the_log_only(serve: Serve) -> None:
    """The client gets one answer for every invalid proof. The log has the reason, and never the secret."""
    server = await serve(workload("one", service="other"), **PORTS)
    used = await _token(server)
    assert (await join(server, Machine(), used)).code is grpc.StatusCode.OK
    revoked = await _token(server)
    await server.ask("POST", "/certs/tokens/revoke", {"token": revoked.partition(".")[0]})
    expired = _put(server, valid=timedelta(hours=1)).text()
    good = await _token(server)
    contradicted = await _token(server, uuid="one", anyway=True)
    identifier, secret, pin = good.split(".")
    wrong = {
        "token_malformed": "not a token",
        "token_unknown": f"ffffffffffff.{secret}.{pin}",
        "token_secret_wrong": f"{identifier}.{'A' * 43}.{pin}",
        "token_used_up": used,
        "token_revoked": revoked,
        "token_expired": expired,
        "other_workload": contradicted,
    }
    for reason, token in wrong.items():
        with structlog.testing.capture_logs() as logs:
            assert await join(server, Machine(), token) == STRANGER, reason
        (answer,) = [log for log in logs if log["event"] == "join refused"]
        assert answer["reason"] == reason
        assert not [log for log in logs for part in token.split(".")[1:2] if part in str(log)]
    with structlog.testing.capture_logs() as logs:
        assert await join(server, Machine(), good, "certificate") == STRANGER
    assert [log["reason"] for log in logs if log["event"] == "join refused"] == ["proof_kind_not_accepted"]
    assert (await join(server, Machine(), good)).code is grpc.StatusCode.OK


async def test_token_that_contradicts_a_workload_keeps_its_use(serve: Serve) -> None:
    """The UUID belongs to another service, so the join is refused.

    The join succeeds after the manifest is fixed.
    """
    server = await serve(workload("one", service="other"), **PORTS)
    token = await _token(server, uuid="one", anyway=True)
    assert await join(server, Machine(), token) == STRANGER
    (listed,) = (await server.ask("GET", "/certs/tokens"))["join_tokens"]
    assert listed["used"] == 0
    server.write(workload("one"))
    machine = Machine()
    async with asyncio.timeout(60):
        while (await join(server, machine, token)).code is not grpc.StatusCode.OK:
            await asyncio.sleep(0.5)


async def test_token_with_ten_uses_admits_exactly_ten_concurrent_machines(serve: Serve) -> None:
    """Of fifty machines ten join, and forty are refused or told to retry."""
    server = await serve(**PORTS)
    token = await _token(server, uses=10)
    answers = await asyncio.gather(*(join(server, Machine(), token) for _ in range(50)))
    joined = [answer for answer in answers if answer.code is grpc.StatusCode.OK]
    assert len(joined) == len({_name(answered) for answered in joined}) == 10
    others = {answer.code for answer in answers} - {grpc.StatusCode.OK}
    assert others <= {grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.RESOURCE_EXHAUSTED}


BROKEN: dict[str, tuple[bytes, grpc.StatusCode, str]] = {
    "no message": (b"\xff\xff", grpc.StatusCode.INVALID_ARGUMENT, "the request is not a JoinRequest"),
    "nothing": (b"", grpc.StatusCode.INVALID_ARGUMENT, "is not PKCS#10"),
    "no PKCS#10": (
        wire.JoinRequest(csr_der=b"csr").SerializeToString(),
        grpc.StatusCode.INVALID_ARGUMENT,
        "the signing request is not PKCS#10 in DER with a public key: the key",
    ),
    "a long request": (
        wire.JoinRequest(csr_der=b"0" * 20_000).SerializeToString(),
        grpc.StatusCode.INVALID_ARGUMENT,
        "the signing request has 20000 bytes; at most 16384 are allowed",
    ),
    "a huge one": (b"0" * 100_000, grpc.StatusCode.RESOURCE_EXHAUSTED, "larger than max"),
}


async def test_malformed_join_request_is_refused_with_its_error(serve: Serve) -> None:
    """Raw bytes are refused with a message, and a token in such a request keeps its use."""
    server = await serve(**PORTS)
    async with channel(server, "enrolment") as opened:
        for which, (request, code, words) in BROKEN.items():
            answered = await call(opened, JOIN, request)
            assert (answered.code, words in answered.words) == (code, True), (which, answered)
        unknown = await call(opened, "/meshwright.enrolment.v1.Enrolment/Leave", b"")
        assert unknown.code is grpc.StatusCode.UNIMPLEMENTED
        token = await _token(server)
        weak = wire.JoinRequest(csr_der=b"", proof=wire.Proof(kind="join-token", data=token.encode()))
        assert (await call(opened, JOIN, weak.SerializeToString())).code is grpc.StatusCode.INVALID_ARGUMENT
        assert (await call(opened, JOIN, Machine().joining(token))).code is grpc.StatusCode.OK


async def test_renewal_requires_a_valid_certificate_of_the_ledger(serve: Serve) -> None:
    """Without a certificate the handshake fails.

    An unknown or expired one is refused, and the port has no Join.
    """
    server = await serve(**PORTS)
    async with channel(server, "renewal") as opened:
        assert (await call(opened, RENEW, b"")).code is grpc.StatusCode.UNAVAILABLE
    unknown = server.certificate(NAME, issued=False)
    assert (await renew(server, unknown, Machine())).reason == "not_issued"
    ended = server.certificate(NAME, lived=timedelta(hours=2))
    assert (await renew(server, ended, Machine())).code is not grpc.StatusCode.OK
    good = server.certificate(NAME)
    async with channel(server, "renewal", good) as opened:
        assert (await call(opened, RENEW, b"")).code is grpc.StatusCode.INVALID_ARGUMENT
        # Methods of the other port are not here.
        assert (await call(opened, JOIN, b"")).code is grpc.StatusCode.UNIMPLEMENTED


async def test_trust_request_returns_roots_only_if_they_differ(serve: Serve) -> None:
    """The answer has no roots for the digest of the current roots, otherwise all of them.

    Each answer has the time of the next renewal.
    """
    server = await serve(**PORTS)
    roots = server.authority.trust_bundle()
    holder = server.certificate(NAME)
    async with channel(server, "renewal", holder) as opened:
        for file, details in ((roots, b""), (b"others", roots)):
            digest = hashlib.sha256(file).hexdigest()
            answered = await call(opened, TRUST, wire.TrustRequest(bundle_digest=digest).SerializeToString())
            answer = wire.TrustResponse.FromString(answered.message)
            assert answer.trust_bundle_pem == details
            assert answer.ask_again_seconds == 600
            due = answer.renew_after.ToDatetime(UTC)
            assert holder.leaf.not_before < due < holder.leaf.not_after


def _ejecting(*endpoints: tuple[str, int]) -> bytes:
    result = [wire.Endpoint(address=address, port=port) for address, port in endpoints]
    return wire.EjectRequest(ejected=result).SerializeToString()


async def test_ejections_that_a_machine_reports_are_shown(serve: Serve) -> None:
    """An ejected proxy is shown as dead until the report is empty. An invalid endpoint changes nothing."""
    server = await serve(workload("one"), workload("two", host=2), **PORTS, dead_after_seconds=0)
    caller = server.certificate("two.store.shop")

    async def shown() -> list[tuple[list[str], bool, bool]]:
        proxies = (await server.ask("GET", "/debug/proxy"))["proxies"]
        return [(proxy["ejected_by"], proxy["dead"], "ejected" in proxy["why"]) for proxy in proxies]

    nobody: list[tuple[list[str], bool, bool]] = [([], False, False), ([], False, False)]
    assert await shown() == nobody
    async with channel(server, "renewal", caller) as opened:
        answered = await call(opened, EJECT, _ejecting(("127.0.40.1", 18080), ("10.9.9.9", 1)))
        assert wire.EjectResponse.FromString(answered.message).holds_seconds == 60
        dead = [(["two.store.shop"], True, True), nobody[1]]
        assert await shown() == dead
        for bad in (("", 80), ("shop.example", 80), ("127.0.40.1", 0), ("127.0.40.1", 65536)):
            answered = await call(opened, EJECT, _ejecting(bad))
            assert answered.code is grpc.StatusCode.INVALID_ARGUMENT, bad
        assert (await call(opened, EJECT, b"\xff")).code is grpc.StatusCode.INVALID_ARGUMENT
        assert await shown() == dead
        assert (await call(opened, EJECT, b"")).code is grpc.StatusCode.OK
        assert await shown() == nobody
    async with channel(server, "renewal", server.certificate(NAME, issued=False)) as opened:
        assert (await call(opened, EJECT, b"")).reason == "not_issued"


async def test_renewals_of_one_proxy_are_rate_limited(serve: Serve) -> None:
    """Ten renewals at once, then one each minute, so that a faulty machine cannot fill the ledger."""
    server = await serve(**PORTS)
    holder = server.certificate(NAME)
    request = wire.RenewRequest(csr_der=Machine().csr).SerializeToString()
    async with channel(server, "renewal", holder) as opened:
        codes = [(await call(opened, RENEW, request)).code for _ in range(12)]
    assert codes[:10] == [grpc.StatusCode.OK] * 10
    assert codes[11] is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_pin_of_a_token_is_the_fingerprint_of_the_root(serve: Serve) -> None:
    """The token's pin is the fingerprint of the self-signed root, by which a machine verifies the server."""
    server = await serve(**PORTS)
    _, _, pin = (await _token(server)).split(".")
    root = x509.load_pem_x509_certificate(server.authority.trust_bundle())
    assert pin == server.authority.fingerprint
    assert root.subject == root.issuer


@pytest.mark.parametrize("setting", ["enrolment_address", "renewal_address"])
async def test_enrolment_and_renewal_ports_open_only_if_configured(serve: Serve, setting: str) -> None:
    """Each port is open only if its address is set."""
    server = await serve(**{setting: "127.0.0.1:0"})
    assert list(server.bound.enrolment) == [setting.removesuffix("_address")]


async def test_log_names_a_token_by_its_id_and_never_by_its_secret(serve: Serve) -> None:
    """The id is not redacted, because it links the token's creation, uses and revocation."""
    server = await serve(workload("one"), **PORTS)
    with structlog.testing.capture_logs() as logs:
        token = await _token(server)
        identifier, secret, _ = token.split(".")
        assert (await join(server, Machine(), token)).code is grpc.StatusCode.OK
        assert (await join(server, Machine(), token)) == STRANGER
        await server.ask("POST", "/certs/tokens/revoke", {"token": identifier})
    written = [redact(None, "info", dict(log)) for log in logs]
    messages = [item["event"] for item in written if identifier in item.values()]
    assert messages == ["join token created", "proxy joined", "join refused", "join token revoked"]
    assert secret not in str(written)


async def test_timeout_of_a_proof_check_is_an_internal_error(tmp_path: Path) -> None:
    """A TimeoutError of the proof check is logged as a failure, not mistaken for a silent client."""
    now = datetime.now(UTC)
    authority = own_authority(tmp_path, TrustDomain("cluster.local"), now)
    made = ads_server_certificate(authority, PairFiles(tmp_path), now, ("127.0.0.1",))
    tls = TlsIdentity(made.chain_pem, made.key.reveal(), authority.trust_bundle(), open_to_all=True)
    counted: list[tuple[str, str]] = []

    async def late(*_: object) -> bytes:
        raise TimeoutError("whoever judges proofs said nothing")

    port = EnrolmentPort(
        JOINING, {"Join": late}, lambda: tls, EnrolmentLimits(), lambda *of: counted.append((of[0], of[1]))
    )
    bound = SimpleNamespace(enrolment={"enrolment": f"127.0.0.1:{await port.start('127.0.0.1:0')}"})
    try:
        with structlog.testing.capture_logs() as logs:
            answered = await join(SimpleNamespace(authority=authority, bound=bound), Machine(), "t")
    finally:
        await port.stop(10)
    assert (answered.code, answered.words) == (
        grpc.StatusCode.INTERNAL,
        "internal error of the control plane: see its log",
    )
    assert [log["event"] for log in logs] == ["request failed"]
    assert counted == [("Join", "failed")]
