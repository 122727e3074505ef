"""Issuance of proxy certificates, presented by a sidecar only to the control plane."""

from datetime import datetime, timedelta

from certs.contract import Authority, Names, Usage
from certs.errors import IssuerError, RequestError
from certs.keys.material import ProxyCertificate, SignedProxy
from certs.keys.pair import issue_pair, sign
from certs.keys.proof_of_possession import SignedRequest
from certs.keys.signing_request import SigningRequest
from certs.ledger.contract import Judge, Ledger
from certs.ledger.entry import LedgerEntry, given_roots
from meshwright.mesh.identity import ProxyName, ProxyNameError


def issue_proxy(
    issuer: Authority,
    ledger: Ledger,
    name: ProxyName,
    validity: timedelta,
    now: datetime,
    claim_within: timedelta | None = None,
    term: timedelta | None = None,
) -> ProxyCertificate:
    """Issue a certificate with the common name `<uuid>.<service>.<namespace>`, of any length.

    The certificate is valid for TLS clients only and has no alternative names: the control plane parses the
    common name itself, verifiers of host names never see this name, and workloads refuse a peer without a
    SPIFFE URI. The certificate is recorded in the ledger before the return, with the `term` of renewals
    unless that is the default. The key is not stored. For example: `a1.cart.shop`. Raises RequestError for a
    name other than three DNS-1123 labels or a validity of zero or less, IssuerError, and StateError.
    """
    _require_whole(name)
    pair = issue_pair(issuer, Usage.PROXY, Names(str(name)), validity, now)
    signer, roots = issuer.signer_of(pair.chain_pem), given_roots(issuer.trust_bundle())
    ends = pair.leaf.not_after, claim_within
    ledger.record(LedgerEntry.issued(pair.leaf.serial, name, now, *ends, signer, term, roots=roots))
    _require_present(issuer, signer)
    return ProxyCertificate(name, pair.leaf.serial, pair.leaf.not_after, pair.chain_pem, pair.key)


def sign_proxy(
    issuer: Authority,
    ledger: Ledger,
    name: ProxyName,
    request: SigningRequest,
    validity: timedelta,
    now: datetime,
    claim_within: timedelta | None = None,
    term: timedelta | None = None,
    joined_by: str = "",
    judge: Judge | None = None,
) -> SignedProxy:
    """Issue a certificate for a key kept by its owner.

    The requester is entitled to `name` by the proof `joined_by`; of the request only the key is used. Raises
    the errors of `issue_proxy`, and the errors of `judge`, called by the ledger at the recording of the
    certificate.
    """
    _require_whole(name)
    shown = SignedRequest(request.csr_pem)
    leaf, chain_pem = sign(issuer, Usage.PROXY, Names(str(name)), validity, shown, now)
    signer, roots = issuer.signer_of(chain_pem), given_roots(issuer.trust_bundle())
    ends = leaf.not_after, claim_within
    ledger.record(LedgerEntry.issued(leaf.serial, name, now, *ends, signer, term, joined_by, roots), judge)
    _require_present(issuer, signer)
    return SignedProxy(name, leaf.serial, leaf.not_before, leaf.not_after, chain_pem)


def _require_present(issuer: Authority, signer: str) -> None:
    """Raise IssuerError if another root signs by now.

    The recording may have waited for a shared store. A root rotation does not wait for a proxy that is not
    in the ledger yet, and the root of its certificate may soon be retired.
    """
    if signer and signer != issuer.fingerprint:
        raise IssuerError("the root was replaced while the certificate was issued; ask again")


def _require_whole(name: ProxyName) -> None:
    try:
        whole = ProxyName.parse(str(name)) == name
    except ProxyNameError as error:
        raise RequestError(str(error)) from error
    if not whole:
        raise RequestError(f"{str(name)[:200]!r} is not of the form UUID.SERVICE.NAMESPACE")
