"""Service certificates follow what the catalog needs."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from certs.errors import IssuerError
from certs.issuers.authority import CertificateAuthority
from certs.issuers.contract import CertificateRequest
from certs.material import ServiceCertificate
from certs.pair_files import PairFiles
from certs.roots.authority import ChangingAuthority
from certs.roots.rotation import advanced
from delivery.certificates import ServiceCertificates
from mesh.identity import ServiceIdentity
from mesh.names import Namespace, ServiceAccountName, TrustDomain
from mesh.problems import Problems

DAY = timedelta(days=1)
STORE = ServiceIdentity(Namespace("shop"), ServiceAccountName("store"))
BAD = ServiceIdentity(Namespace("Shop"), ServiceAccountName("store"))
NAMES = ("store.shop.svc.cluster.local",)


class _Issuer:
    """An authority that can be told to fail."""

    def __init__(self, authority: CertificateAuthority) -> None:
        self._authority = authority
        self.down = False

    def become(self, authority: CertificateAuthority) -> None:
        """Sign with another root."""
        self._authority = authority

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the authority's."""
        return self._authority.trust_domain

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Issue, or fail."""
        if self.down:
            raise IssuerError("the issuer is down")
        return self._authority.issue(request, now)

    def trust_bundle(self) -> bytes:
        """Return the authority's."""
        return self._authority.trust_bundle()

    def signing_bundle(self) -> bytes:
        """Return the authority's."""
        return self._authority.signing_bundle()


@pytest.fixture
def issuer(tmp_path: Path, now: datetime) -> _Issuer:
    """Return an issuer that works."""
    return _Issuer(CertificateAuthority.open(tmp_path, TrustDomain("cluster.local"), now))


def _keeper(issuer: _Issuer, state: Path, issued: list[int]) -> ServiceCertificates:
    return ServiceCertificates(issuer, PairFiles(state), issued.append, lambda: 0.0)


def _needed(
    keeper: ServiceCertificates,
    needed: Mapping[ServiceIdentity, tuple[str, ...]],
    validity: timedelta,
    now: datetime,
) -> tuple[Mapping[ServiceIdentity, ServiceCertificate], Problems]:
    """Tell the keeper what is needed; return the certificates in force, and the problems."""
    problems = keeper.update(needed, validity, now).problems
    return keeper.certificates, problems


def test_certificates_are_kept_and_renewed_when_due(issuer: _Issuer, tmp_path: Path, now: datetime) -> None:
    """The same one until about half of its life is over."""
    issued: list[int] = []
    keeper = _keeper(issuer, tmp_path, issued)
    first, _ = _needed(keeper, {STORE: NAMES}, DAY, now)
    again, _ = _needed(keeper, {STORE: NAMES}, DAY, now + timedelta(hours=10))
    assert again == first
    assert not keeper.needs_work(now + timedelta(hours=10))
    assert keeper.needs_work(now + timedelta(hours=17))
    renewed, _ = _needed(keeper, {STORE: NAMES}, DAY, now + timedelta(hours=17))
    assert renewed[STORE].serial != first[STORE].serial
    assert issued == [1, 0, 1]


def test_an_issuer_that_is_down_leaves_the_old_certificate_in_force(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """The problem names the identity, and it is tried again."""
    keeper = _keeper(issuer, tmp_path, [])
    first, _ = _needed(keeper, {STORE: NAMES}, DAY, now)
    issuer.down = True
    later = now + timedelta(hours=17)
    kept, (problem,) = _needed(keeper, {STORE: NAMES}, DAY, later)
    assert kept == first
    assert (str(problem.key), problem.expected) == ("ServiceAccount shop/store", "the issuer is down")
    issuer.down = False
    assert keeper.needs_work(now)
    renewed, problems = _needed(keeper, {STORE: NAMES}, DAY, later)
    assert renewed[STORE].serial != first[STORE].serial
    assert problems == ()
    assert not keeper.needs_work(later)


def test_one_identity_that_cannot_be_certified_stops_no_other(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """The good rest is issued."""
    made, problems = _needed(_keeper(issuer, tmp_path, []), {BAD: (), STORE: NAMES}, DAY, now)
    assert list(made) == [STORE]
    assert [each.code for each in problems] == ["certificate-not-issued"]


def test_a_root_that_changes(tmp_path: Path, now: datetime) -> None:
    """What is trusted is told at once; all is issued anew, once, when another root signs."""
    authority = ChangingAuthority.open(tmp_path, TrustDomain("cluster.local"), now)
    issued: list[int] = []
    keeper = ServiceCertificates(authority, PairFiles(tmp_path), issued.append, lambda: 0.0)
    first, _ = _needed(keeper, {STORE: NAMES}, DAY, now)
    rotation = authority.begin(now)
    assert keeper.needs_work(now)
    update = keeper.update({}, DAY, now)
    assert (update.trust_bundle, dict(update.changed)) == (authority.trust_bundle(), {})
    assert not keeper.needs_work(now)
    authority.step(advanced(rotation, now), now)
    assert keeper.needs_work(now)
    replaced, _ = _needed(keeper, {}, DAY, now)
    assert replaced[STORE].serial != first[STORE].serial
    assert not keeper.needs_work(now)
    again = ServiceCertificates(authority, PairFiles(tmp_path), issued.append, lambda: 0.0)
    assert _needed(again, {STORE: NAMES}, DAY, now)[0] == replaced
    assert issued == [1, 0, 1, 0]


def test_a_root_that_changes_while_nothing_can_be_signed(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """What is in force stays until it can be replaced."""
    keeper = _keeper(issuer, tmp_path, [])
    first, _ = _needed(keeper, {STORE: NAMES}, DAY, now)
    issuer.become(CertificateAuthority.open(tmp_path / "other", TrustDomain("cluster.local"), now))
    issuer.down = True
    kept, problems = _needed(keeper, {}, DAY, now)
    assert (kept, len(problems)) == (first, 1)
    issuer.down = False
    replaced, problems = _needed(keeper, {}, DAY, now)
    assert (replaced[STORE].serial != first[STORE].serial, problems) == (True, ())


def test_another_validity_begins_with_the_stored_certificates(
    issuer: _Issuer, tmp_path: Path, now: datetime
) -> None:
    """MeshConfig may change at any time; nothing is re-keyed at once for it."""
    issued: list[int] = []
    keeper = _keeper(issuer, tmp_path, issued)
    first, _ = _needed(keeper, {STORE: NAMES}, DAY, now)
    second, _ = _needed(keeper, {STORE: NAMES}, DAY / 2, now)
    assert second == first
    renewed, _ = _needed(keeper, {STORE: NAMES}, DAY / 2, now + timedelta(hours=17))
    certificate = renewed[STORE]
    assert certificate.not_after == now.replace(microsecond=0) + timedelta(hours=17) + DAY / 2


def test_an_identity_that_is_gone_is_not_renewed(issuer: _Issuer, tmp_path: Path, now: datetime) -> None:
    """Nobody asks for it any more: when it would have been due is looked at once, and nothing comes of it."""
    keeper, later = _keeper(issuer, tmp_path, []), now + timedelta(days=2)
    _needed(keeper, {STORE: NAMES}, DAY, now)
    keeper.update({STORE: None}, DAY, now)
    assert keeper.update({}, DAY, later).changed == {}
    assert not keeper.needs_work(later)
    assert dict(keeper.certificates) == {}
