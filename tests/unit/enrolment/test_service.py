"""What one request comes to: nothing of a proof is used where nothing comes of it, however that ends."""

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
from certs.issuers.authority import CertificateAuthority
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
from tests.unit.enrolment.test_tokens import NOW, TOKEN, record

NAME = ProxyName.parse("one.shop.market")


class Signs:
    """The mesh's CA and ledger; `failing` is what it raises instead, `meanwhile` happens before it signs."""

    def __init__(self, state: Path) -> None:
        self.authority = CertificateAuthority.open(state, TrustDomain("mesh.example"), NOW)
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
        """Sign, or fail."""
        if self.failing is not None:
            raise self.failing
        self.meanwhile()
        life, ledger = validity or timedelta(days=90), self.ledger
        terms = None, validity, joined_by, judge
        return sign_proxy(self.authority, ledger, name, request, life, NOW, *terms)

    changes_roots = False

    def replaces(self, certificate_pem: bytes) -> bool:
        """Replace what is said to be replaced."""
        del certificate_pem
        return self.changes_roots

    def trust_bundle(self) -> bytes:
        """Return the root."""
        return self.authority.trust_bundle()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteTokens]:
    """Return a store with one token, of one use."""
    with SqliteTokens.open(tmp_path / "tokens.sqlite") as opened:
        opened.add(TOKEN, record(days=7))
        yield opened


def csr() -> bytes:
    """Return a request of a new key."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.DER)


class AtHand:
    """Takes everybody for one proxy, by the certificate that is shown."""

    kind = "certificate"

    async def prove(self, evidence: Evidence, now: datetime) -> Entitlement:
        """Return it."""
        return Entitlement(NAME, serial=read_leaf(evidence.certificate or b"").serial)


def enrolment(signs: Signs, store: SqliteTokens, **changes: object) -> Enrolment:
    """Return the service."""
    limits = EnrolmentLimits()
    times = {"clock": lambda: NOW, "monotonic": lambda: 0.0, **changes}
    tokens = JoinTokenProof(store, limits.by_token, times["monotonic"])  # type: ignore[arg-type]
    return Enrolment(signs, {KIND: tokens}, AtHand(), limits=limits, **times)  # type: ignore[arg-type]


DATA = TOKEN.text().encode()


@pytest.mark.parametrize("failing", [IssuerError("away"), RequestError("never"), RuntimeError("ours")])
async def test_a_use_is_kept_where_nothing_is_signed(
    signs: Signs, store: SqliteTokens, failing: Exception
) -> None:
    """Whatever it fails by; then it lets in."""
    joining = enrolment(signs, store)
    signs.failing = failing
    with pytest.raises(type(failing)):
        await joining.join(csr(), KIND, DATA, "10.0.0.1")
    assert [each.used for each in store.tokens()] == [0]
    signs.failing = None
    granted = await joining.join(csr(), KIND, DATA, "10.0.0.1")
    assert granted.signed.not_after == NOW + timedelta(days=7)


async def test_a_use_that_has_certified_a_key_is_not_given_back_by_its_next_failure(
    signs: Signs, store: SqliteTokens
) -> None:
    """It was used, and the token lets nobody else in."""
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


async def test_of_many_with_one_use_one_joins_whatever_fails_meanwhile(
    signs: Signs, store: SqliteTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, with a key each; twice nothing is signed, and the use is there for the next."""
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
        ends += [type(each).__name__ for each in await asyncio.gather(*tried, return_exceptions=True)]
    assert (ends.count("EnrolmentGrant"), ends.count("IssuerError"), ends.count("ProofRefused")) == (1, 2, 21)
    assert len(signed) == 3
    assert [each.used for each in store.tokens()] == [1]


async def test_a_name_that_contradicts_is_not_certified(signs: Signs, store: SqliteTokens) -> None:
    """And nothing of the token is used, nor of how often one may ask: once it is mended it lets in."""
    words = "it is another's"
    joining, request = enrolment(signs, store, contradicts=lambda _: words), csr()
    for _ in range(12):
        with structlog.testing.capture_logs() as logs, pytest.raises(ProofRefused):
            await joining.join(request, KIND, DATA, "10.0.0.1")
        assert [(each["reason"], each["shown"]) for each in logs] == [("other_workload", TOKEN.id)]
    assert [each.used for each in store.tokens()] == [0]
    words = ""
    assert (await joining.join(request, KIND, DATA, "10.0.0.1")).signed.not_after > NOW


async def test_of_two_requests_of_one_key_one_waits(signs: Signs, store: SqliteTokens) -> None:
    """The one that is under way could give back what the other has used."""
    joining, request = enrolment(signs, store), csr()
    both = await asyncio.gather(
        *(joining.join(request, KIND, DATA, "10.0.0.1") for _ in range(2)), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in both) == ["EnrolmentGrant", "LimitExhausted"]
    assert (await joining.join(request, KIND, DATA, "10.0.0.1")).signed.not_after > NOW


async def test_who_asks_too_often_is_refused_and_does_not_fill_the_log(
    signs: Signs, store: SqliteTokens
) -> None:
    """One address, and one token: others go on."""
    joining = enrolment(signs, store)
    with structlog.testing.capture_logs() as logs:
        for _ in range(200):
            with pytest.raises((ProofRefused, LimitExhausted)):
                await joining.join(csr(), KIND, b"no token", "10.0.0.1")
    assert len(logs) == 20
    assert (await joining.join(csr(), KIND, DATA, "10.0.0.2")).signed.not_after > NOW


async def test_who_knows_a_token_s_id_keeps_nobody_out(signs: Signs, store: SqliteTokens) -> None:
    """It is no secret: wherever he guesses from, and however often; who has the secret is counted."""
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


async def test_who_joins_again_and_again_is_told_to_come_back_later(
    signs: Signs, store: SqliteTokens
) -> None:
    """By the same key, for which it has a use: each time is a certificate more in the ledger."""
    joining, request = enrolment(signs, store), csr()
    for _ in range(10):
        await joining.join(request, KIND, DATA, "10.0.0.1")
    with structlog.testing.capture_logs() as logs, pytest.raises(LimitExhausted, match="proxy"):
        await joining.join(request, KIND, DATA, "10.0.0.1")
    assert [each["reason"] for each in logs] == ["too_many"]
    assert len(signs.ledger.entries()) == 10


def test_an_allowance_comes_back_and_is_nobody_else_s() -> None:
    """Three at once, then one a second; of many who ask, those who have not for long are forgotten."""
    allowed = Allowances(Pace(3, 1.0), kept=2)
    assert [allowed.take("a", 0.0) for _ in range(4)] == [True, True, True, False]
    assert allowed.take("b", 0.0)
    assert [allowed.take("a", 2.0) for _ in range(3)] == [True, True, False]
    assert allowed.take("c", 2.0)
    assert [allowed.take("b", 2.0) for _ in range(3)] == [True] * 3
    assert len(allowed._buckets) == 2


def test_who_goes_on_asking_is_let_in_at_his_pace() -> None:
    """However much more he asks: what he was refused is not held against him."""
    allowed = Allowances(Pace(3, 1.0))
    assert sum(allowed.take("a", eighths / 8) for eighths in range(801)) == 103


async def test_who_asked_while_nothing_could_be_signed_is_let_in_soon_after(
    signs: Signs, store: SqliteTokens
) -> None:
    """A machine whose certificate has ended asks every few seconds, and the server's disk is full."""
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


class Installed:
    """A proof of a third party."""

    kind = "third"

    async def prove(self, evidence: Evidence, now: datetime) -> Entitlement:
        """Entitle everybody."""
        return Entitlement(NAME)


def raising() -> Installed:
    """Return nothing."""
    raise OSError("no such device")


def test_a_third_party_adds_its_own_proof_by_an_entry_point() -> None:
    """By name; what cannot be used, or is not there, is said."""
    here, group = "tests.unit.enrolment.test_service", "meshwright.proofs"
    points = [
        EntryPoint("third", f"{here}:Installed", group),
        EntryPoint("other", f"{here}:Installed", group),
        EntryPoint("raises", f"{here}:raising", group),
        EntryPoint("missing", f"{here}:nothing", group),
    ]
    ours = {KIND: AtHand}
    found = accepted((KIND, "third"), ours, points)
    assert [type(each).__name__ for each in found.values()] == ["AtHand", "Installed"]
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


async def test_what_a_machine_was_given_may_be_in_the_place_of_what_it_said(
    signs: Signs, store: SqliteTokens, tmp_path: Path
) -> None:
    """Until it says so itself, it has one or the other: with the last answer, and with a renewal."""
    service = enrolment(signs, store)
    granted = await service.join(csr(), KIND, DATA, "10.0.0.1")
    pem, ours = granted.signed.chain_pem, granted.bundle.digest

    async def said(digest: str) -> frozenset[str]:
        await service.trust(digest, pem, "10.0.0.1")
        found = service.confirmations.of(NAME)
        assert found is not None
        return found.possible

    assert await said("of others") == {"of others", ours}
    assert await said(ours) == {ours}
    signs.authority = CertificateAuthority.open(tmp_path / "other", TrustDomain("mesh.example"), NOW)
    other = (await service.renew(csr(), pem, "10.0.0.1")).bundle.digest
    found = service.confirmations.of(NAME)
    assert found is not None
    assert found.possible == {ours, other}
    assert await said(other) == {other}


@pytest.mark.parametrize("changing", [False, True])
async def test_who_says_nothing_any_more_is_forgotten_while_no_root_changes(
    signs: Signs, store: SqliteTokens, changing: bool
) -> None:
    """Proxies come and go; a change waits for what each has said since it began, however long ago that is."""
    gone, late = ProxyName.parse("gone.shop.market"), ProxyName.parse("late.shop.market")
    service, signs.changes_roots = enrolment(signs, store), changing
    for name, minutes in ((gone, 60), (late, 59)):
        service.confirmations.note(name, Confirmation("roots", "0a", NOW - timedelta(minutes=minutes)))
    granted = await service.join(csr(), KIND, DATA, "10.0.0.1")
    await service.trust(granted.bundle.digest, granted.signed.chain_pem, "10.0.0.1")
    assert set(service.confirmations.all()) == {NAME, late, *([gone] if changing else [])}


async def test_who_is_revoked_while_another_certificate_is_signed_does_not_get_it(
    signs: Signs, store: SqliteTokens
) -> None:
    """Whether he renews or asks again by his token: the ledger has none of it, and the log says why."""
    service, request = enrolment(signs, store), csr()
    joined = (await service.join(request, KIND, DATA, "10.0.0.1")).signed
    renewed = (await service.renew(csr(), joined.chain_pem, "10.0.0.1")).signed
    known = [each.serial for each in signs.ledger.entries()]
    signs.meanwhile = lambda: [signs.ledger.revoke(each, NOW) for each in known]
    with pytest.raises(ProofRefused) as renewing:
        await service.renew(csr(), renewed.chain_pem, "10.0.0.1")
    assert renewing.value.reason == "revoked"
    with pytest.raises(ProofRefused) as joining:
        await service.join(request, KIND, DATA, "10.0.0.1")
    assert joining.value.reason == "proxy_revoked"
    assert [each.serial for each in signs.ledger.entries()] == known


async def test_who_has_another_certificate_renews_by_that(signs: Signs, store: SqliteTokens) -> None:
    """One that was revoked by its serial takes along none but itself."""
    service = enrolment(signs, store)
    shown = (await service.join(csr(), KIND, DATA, "10.0.0.1")).signed.chain_pem
    first, second = [(await service.renew(csr(), shown, "10.0.0.1")).signed for _ in range(2)]
    signs.ledger.revoke(first.serial, NOW)
    third = (await service.renew(csr(), second.chain_pem, "10.0.0.1")).signed
    assert third.serial not in {first.serial, second.serial}


async def test_who_is_shut_out_takes_along_nobody_whose_proof_begins_like_his(
    signs: Signs, store: SqliteTokens
) -> None:
    """Ids of third parties may be long, and may have in them what no line has."""

    class Third:
        kind = "third"

        async def prove(self, evidence: Evidence, now: datetime) -> Entitlement:
            return Entitlement(NAME, evidence.data.decode())

    service = Enrolment(signs, {"third": Third()}, AtHand(), clock=lambda: NOW, monotonic=lambda: 0.0)
    long, lines = b"x" * 300, b"a\n1"
    for proof in (long, lines):
        joined = await service.join(csr(), "third", proof, "10.0.0.1")
        signs.ledger.revoke(joined.signed.serial, NOW)
    for proof in (long, lines):
        with pytest.raises(ProofRefused, match="was revoked"):
            await service.join(csr(), "third", proof, "10.0.0.1")
    for other in (long + b"y", b"a\t1"):
        await service.join(csr(), "third", other, "10.0.0.1")
    assert all(len(each.joined_by) <= 200 and each.joined_by.isprintable() for each in signs.ledger.entries())
