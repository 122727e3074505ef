"""Tests of enrolment requests: token uses, limits, revocation, and confirmed trust bundles."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certs.errors import IssuerError, RequestError
from certs.keys.leaf import read_leaf
from certs.keys.material import SignedProxy
from certs.keys.signing_request import SigningRequest
from certs.ledger.contract import Judge
from certs.ledger.sqlite import SqliteLedger
from certs.proxy import sign_proxy
from meshwright.enrolment.limits import Allowances, EnrolmentLimits, LimitExhausted, Pace
from meshwright.enrolment.proofs.contract import Entitlement, Evidence, ProofRefused
from meshwright.enrolment.proofs.join_token import KIND, JoinTokenProof
from meshwright.enrolment.proofs.registry import accepted
from meshwright.enrolment.service import Enrolment, EnrolmentGrant
from meshwright.enrolment.store.sqlite import SqliteTokens
from meshwright.enrolment.trust import Confirmation
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority
from tests.unit.enrolment.store.tokens import NOW, TOKEN, record

NAME = ProxyName.parse("one.shop.market")


class Signs:
    """The mesh's CA and ledger; `sign` raises `failing` if set, and calls `meanwhile` before it signs."""

    def __init__(self, state: Path) -> None:
        self.authority = own_authority(state, TrustDomain("mesh.example"), NOW)
        self.ledger = SqliteLedger.open(state / "ledger.sqlite")
        self.failing: Exception | None = None
        self.meanwhile: Callable[[], object] = lambda: None

    def sign(
        self,
        name: ProxyName,
        request: SigningRequest,
        validity: timedelta | None,
        joined_by: str,
        judge: Judge,
    ) -> SignedProxy:
        """Sign, or raise `failing`."""
        if self.failing is not None:
            raise self.failing
        self.meanwhile()
        life, ledger = validity or timedelta(days=90), self.ledger
        terms = None, validity, joined_by, judge
        return sign_proxy(self.authority, ledger, name, request, life, NOW, *terms)

    changes_roots = False

    def replaces(self, certificate_pem: bytes) -> bool:
        """Return `changes_roots`."""
        del certificate_pem
        return self.changes_roots

    def trust_bundle(self) -> bytes:
        """Return the root certificate."""
        return self.authority.trust_bundle()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteTokens]:
    """Return a store with one token of one use."""
    with SqliteTokens.open(tmp_path / "tokens.sqlite") as opened:
        opened.add(TOKEN, record(days=7))
        yield opened


def csr() -> bytes:
    """Return a signing request with a new key."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.DER)


class SerialProof:
    """A proof that takes every client for one proxy, with the serial of the given certificate."""

    kind = "certificate"

    async def prove(self, evidence: Evidence, now: datetime) -> Entitlement:
        """Return the entitlement of that proxy."""
        return Entitlement(NAME, serial=read_leaf(evidence.certificate or b"").serial)


def enrolment(signs: Signs, store: SqliteTokens, **changes: object) -> Enrolment:
    """Return the enrolment service."""
    limits = EnrolmentLimits()
    times = {"clock": lambda: NOW, "monotonic": lambda: 0.0, **changes}
    tokens = JoinTokenProof(store, limits.by_token, times["monotonic"])  # type: ignore[arg-type]
    return Enrolment(signs, {KIND: tokens}, SerialProof(), limits=limits, **times)  # type: ignore[arg-type]


DATA = TOKEN.text().encode()


@pytest.mark.parametrize("failing", [IssuerError("away"), RequestError("never"), RuntimeError("ours")])
async def test_token_use_is_given_back_when_signing_fails(
    signs: Signs, store: SqliteTokens, failing: Exception
) -> None:
    """After any failure of signing, the token is unused, and its next request joins."""
    joining = enrolment(signs, store)
    signs.failing = failing
    with pytest.raises(type(failing)):
        await joining.join(csr(), KIND, DATA, "10.0.0.1")
    assert [token.used for token in store.tokens()] == [0]
    signs.failing = None
    granted = await joining.join(csr(), KIND, DATA, "10.0.0.1")
    assert granted.signed.not_after == NOW + timedelta(days=7)


async def test_token_use_that_certified_a_key_is_kept_when_the_next_signing_fails(
    signs: Signs, store: SqliteTokens
) -> None:
    """Otherwise the token would admit a second key. The first key may join again."""
    joining, request = enrolment(signs, store), csr()
    first = await joining.join(request, KIND, DATA, "10.0.0.1")
    signs.failing = IssuerError("away")
    with pytest.raises(IssuerError):
        await joining.join(request, KIND, DATA, "10.0.0.1")
    signs.failing = None
    with pytest.raises(ProofRefused, match="token_used_up"):
        await joining.join(csr(), KIND, DATA, "10.0.0.1")
    again = await joining.join(request, KIND, DATA, "10.0.0.1")
    assert again.signed.name == first.signed.name


async def test_one_token_use_admits_one_of_many_keys_despite_failures(
    signs: Signs, store: SqliteTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 24 requests with a key each, two fail in signing and give the use back, one joins."""
    signed = list[str]()

    def sign(
        name: ProxyName, request: SigningRequest, validity: timedelta | None, by: str, judge: Judge
    ) -> SignedProxy:
        signed.append(by)
        if len(signed) <= 2:
            raise IssuerError("away")
        return Signs.sign(signs, name, request, validity, by, judge)

    monkeypatch.setattr(signs, "sign", sign)
    joining = enrolment(signs, store)
    ends = list[str]()
    for _ in range(3):
        tried = (joining.join(csr(), KIND, DATA, "10.0.0.1") for _ in range(8))
        ends += [type(item).__name__ for item in await asyncio.gather(*tried, return_exceptions=True)]
    assert (ends.count("EnrolmentGrant"), ends.count("IssuerError"), ends.count("ProofRefused")) == (1, 2, 21)
    assert len(signed) == 3
    assert [token.used for token in store.tokens()] == [1]


async def test_name_that_contradicts_a_workload_is_refused_and_uses_nothing(
    signs: Signs, store: SqliteTokens
) -> None:
    """Neither the token nor the limits are used, so the token works once the conflict is corrected."""
    words = "it is another's"
    joining, request = enrolment(signs, store, contradicts=lambda _: words), csr()
    for _ in range(12):
        with structlog.testing.capture_logs() as logs, pytest.raises(ProofRefused):
            await joining.join(request, KIND, DATA, "10.0.0.1")
        assert [(log["reason"], log["shown"]) for log in logs] == [("other_workload", TOKEN.id)]
    assert [token.used for token in store.tokens()] == [0]
    words = ""
    assert (await joining.join(request, KIND, DATA, "10.0.0.1")).signed.not_after > NOW


async def test_second_concurrent_request_with_the_same_key_is_postponed(
    signs: Signs, store: SqliteTokens
) -> None:
    """Otherwise a failure of one request could give back the use of the other."""
    joining, request = enrolment(signs, store), csr()
    both = await asyncio.gather(
        *(joining.join(request, KIND, DATA, "10.0.0.1") for _ in range(2)), return_exceptions=True
    )
    assert sorted(type(item).__name__ for item in both) == ["EnrolmentGrant", "LimitExhausted"]
    assert (await joining.join(request, KIND, DATA, "10.0.0.1")).signed.not_after > NOW


async def test_client_beyond_its_limit_is_refused_without_filling_the_log(
    signs: Signs, store: SqliteTokens
) -> None:
    """200 bad requests of one address write 20 lines, and another address still joins."""
    joining = enrolment(signs, store)
    with structlog.testing.capture_logs() as logs:
        for _ in range(200):
            with pytest.raises((ProofRefused, LimitExhausted)):
                await joining.join(csr(), KIND, b"no token", "10.0.0.1")
    assert len(logs) == 20
    assert (await joining.join(csr(), KIND, DATA, "10.0.0.2")).signed.not_after > NOW


async def test_wrong_secrets_do_not_count_against_the_limit_of_a_token(
    signs: Signs, store: SqliteTokens
) -> None:
    """A token's ID is no secret, so only requests with the right secret are counted."""
    joining = enrolment(signs, store)
    guess = f"{TOKEN.id}.{'A' * 43}".encode()
    shown = csr()
    for number in range(int(EnrolmentLimits().by_token.at_once) + 1):
        with pytest.raises(ProofRefused, match="token_secret_wrong"):
            await joining.join(shown, KIND, guess, f"10.0.0.{number}")
    request = csr()
    assert (await joining.join(request, KIND, DATA, "10.0.1.1")).signed.not_after > NOW
    proof = JoinTokenProof(store, Pace(3, 0.0), lambda: 0.0)
    evidence = Evidence(DATA, "another key", "10.0.1.1")
    for _ in range(3):
        with pytest.raises(ProofRefused, match="token_used_up"):
            await proof.prove(evidence, NOW)
    with pytest.raises(LimitExhausted, match=TOKEN.id):
        await proof.prove(evidence, NOW)


async def test_repeated_joins_with_one_key_are_postponed_after_ten(signs: Signs, store: SqliteTokens) -> None:
    """Each join adds a certificate to the ledger, although the key needs no further use of the token."""
    joining, request = enrolment(signs, store), csr()
    for _ in range(10):
        await joining.join(request, KIND, DATA, "10.0.0.1")
    with structlog.testing.capture_logs() as logs, pytest.raises(LimitExhausted, match="proxy"):
        await joining.join(request, KIND, DATA, "10.0.0.1")
    assert [log["reason"] for log in logs] == ["too_many"]
    assert len(signs.ledger.entries()) == 10


def test_allowance_is_refilled_over_time_and_separate_for_each_key() -> None:
    """Three at once, then one a second; beyond `kept` keys, the least recent ones are forgotten."""
    allowed = Allowances(Pace(3, 1.0), kept=2)
    assert [allowed.take("a", 0.0) for _ in range(4)] == [True, True, True, False]
    assert allowed.take("b", 0.0)
    assert [allowed.take("a", 2.0) for _ in range(3)] == [True, True, False]
    assert allowed.take("c", 2.0)
    assert [allowed.take("b", 2.0) for _ in range(3)] == [True] * 3
    assert len(allowed._buckets) == 2


def test_refused_requests_do_not_reduce_the_allowance() -> None:
    """8 requests a second for 100 s are accepted at the pace: 3 at once and then 1 a second."""
    allowed = Allowances(Pace(3, 1.0))
    assert sum(allowed.take("a", eighths / 8) for eighths in range(801)) == 103


async def test_client_that_asked_while_signing_failed_joins_soon_after(
    signs: Signs, store: SqliteTokens
) -> None:
    """A machine that asks every 5 s while the server's disk is full joins within 65 s of the repair."""
    clock = 0.0
    joining, request = enrolment(signs, store, monotonic=lambda: clock), csr()
    signs.failing = IssuerError("away")
    for _ in range(100):
        with pytest.raises((IssuerError, LimitExhausted)):
            await joining.join(request, KIND, DATA, "10.0.0.1")
        clock += 5.0
    signs.failing, began = None, clock
    joined = list[EnrolmentGrant]()
    while not joined and clock < began + 600:
        with suppress(LimitExhausted):
            joined.append(await joining.join(request, KIND, DATA, "10.0.0.1"))
        clock += 5.0
    assert joined
    assert clock <= began + 65


class ThirdPartyProof:
    """A third party's proof."""

    kind = "third"

    async def prove(self, evidence: Evidence, now: datetime) -> Entitlement:
        """Entitle every client."""
        return Entitlement(NAME)


def raising() -> ThirdPartyProof:
    """Raise OSError instead of returning a proof."""
    raise OSError("no such device")


def test_third_party_adds_its_own_proof_by_an_entry_point() -> None:
    """An entry point is chosen by its name; an unusable or unknown one is an error with its cause."""
    here, group = "tests.unit.enrolment.test_service", "meshwright.proofs"
    points = [
        EntryPoint("third", f"{here}:ThirdPartyProof", group),
        EntryPoint("other", f"{here}:ThirdPartyProof", group),
        EntryPoint("raises", f"{here}:raising", group),
        EntryPoint("missing", f"{here}:nothing", group),
    ]
    ours = {KIND: SerialProof}
    proofs = accepted((KIND, "third"), ours, points)
    assert [type(proof).__name__ for proof in proofs.values()] == ["SerialProof", "ThirdPartyProof"]
    for name, words in {
        "other": "has the kind 'third': must be 'other'",
        "raises": "cannot be used: OSError: no such device",
        "missing": "cannot be used: AttributeError",
        "nowhere": (
            "unknown kind of proof of identity 'nowhere': must be one of join-token, missing, other, raises, "
            "third"
        ),
    }.items():
        with pytest.raises(RequestError, match=words):
            accepted((name,), ours, points)


async def test_sent_trust_bundle_is_possible_besides_the_confirmed_one(
    signs: Signs, store: SqliteTokens, tmp_path: Path
) -> None:
    """Until the proxy confirms the bundle of its last response, it may trust either of the two."""
    service = enrolment(signs, store)
    granted = await service.join(csr(), KIND, DATA, "10.0.0.1")
    pem, ours = granted.signed.chain_pem, granted.bundle.digest

    async def said(digest: str) -> frozenset[str]:
        await service.trust(digest, pem, "10.0.0.1")
        confirmation = service.confirmations.last(NAME)
        assert confirmation is not None
        return confirmation.possible

    assert await said("of others") == {"of others", ours}
    assert await said(ours) == {ours}
    signs.authority = own_authority(tmp_path / "other", TrustDomain("mesh.example"), NOW)
    other = (await service.renew(csr(), pem, "10.0.0.1")).bundle.digest
    result = service.confirmations.last(NAME)
    assert result is not None
    assert result.possible == {ours, other}
    assert await said(other) == {other}


@pytest.mark.parametrize("changing", [False, True])
async def test_confirmation_is_forgotten_after_an_hour_unless_roots_change(
    signs: Signs, store: SqliteTokens, changing: bool
) -> None:
    """Proxies disappear, so a confirmation of 60 minutes ago is dropped.

    A change of roots keeps it, because the change needs every confirmation since its beginning.
    """
    gone, late = ProxyName.parse("gone.shop.market"), ProxyName.parse("late.shop.market")
    service, signs.changes_roots = enrolment(signs, store), changing
    for name, minutes in ((gone, 60), (late, 59)):
        service.confirmations.note(name, Confirmation("roots", "0a", NOW - timedelta(minutes=minutes)))
    granted = await service.join(csr(), KIND, DATA, "10.0.0.1")
    await service.trust(granted.bundle.digest, granted.signed.chain_pem, "10.0.0.1")
    assert set(service.confirmations.all()) == {NAME, late, *([gone] if changing else [])}


async def test_proxy_that_is_revoked_during_signing_gets_no_certificate(
    signs: Signs, store: SqliteTokens
) -> None:
    """A renewal and a repeated join are refused with the reason, and the ledger has no new certificate."""
    service, request = enrolment(signs, store), csr()
    joined = (await service.join(request, KIND, DATA, "10.0.0.1")).signed
    renewed = (await service.renew(csr(), joined.chain_pem, "10.0.0.1")).signed
    known = [entry.serial for entry in signs.ledger.entries()]
    signs.meanwhile = lambda: [signs.ledger.revoke(item, NOW) for item in known]
    with pytest.raises(ProofRefused) as renewing:
        await service.renew(csr(), renewed.chain_pem, "10.0.0.1")
    assert renewing.value.reason == "revoked"
    with pytest.raises(ProofRefused) as joining:
        await service.join(request, KIND, DATA, "10.0.0.1")
    assert joining.value.reason == "proxy_revoked"
    assert [entry.serial for entry in signs.ledger.entries()] == known


async def test_revoked_serial_does_not_prevent_renewal_with_another_certificate(
    signs: Signs, store: SqliteTokens
) -> None:
    """A revocation by serial concerns this certificate alone."""
    service = enrolment(signs, store)
    shown = (await service.join(csr(), KIND, DATA, "10.0.0.1")).signed.chain_pem
    first, second = [(await service.renew(csr(), shown, "10.0.0.1")).signed for _ in range(2)]
    signs.ledger.revoke(first.serial, NOW)
    third = (await service.renew(csr(), second.chain_pem, "10.0.0.1")).signed
    assert third.serial not in {first.serial, second.serial}


async def test_revoked_proof_does_not_exclude_proofs_with_similar_ids(
    signs: Signs, store: SqliteTokens
) -> None:
    """A third party's IDs may be long or have control characters, and must still be told apart.

    The ledger's `joined_by` is nevertheless printable and has at most 200 characters.
    """

    class Third:
        kind = "third"

        async def prove(self, evidence: Evidence, now: datetime) -> Entitlement:
            return Entitlement(NAME, evidence.data.decode())

    service = Enrolment(signs, {"third": Third()}, SerialProof(), clock=lambda: NOW, monotonic=lambda: 0.0)
    long, lines = b"x" * 300, b"a\n1"
    for proof in (long, lines):
        joined = await service.join(csr(), "third", proof, "10.0.0.1")
        signs.ledger.revoke(joined.signed.serial, NOW)
    for proof in (long, lines):
        with pytest.raises(ProofRefused, match="was revoked"):
            await service.join(csr(), "third", proof, "10.0.0.1")
    for other in (long + b"y", b"a\t1"):
        await service.join(csr(), "third", other, "10.0.0.1")
    assert all(
        len(entry.joined_by) <= 200 and entry.joined_by.isprintable() for entry in signs.ledger.entries()
    )
