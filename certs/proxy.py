"""Proxy certificates: what a sidecar shows to the control plane, and to nobody else."""

from datetime import datetime, timedelta

from certs.contract import Authority, Names, Usage
from certs.errors import RequestError
from certs.keys.material import ProxyCertificate, SignedProxy
from certs.keys.pair import issue_pair, sign
from certs.keys.proof_of_possession import SignedRequest
from certs.keys.signing_request import SigningRequest
from certs.ledger.contract import Judge, Ledger
from certs.ledger.entry import LedgerEntry
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
    """Issue a certificate whose common name is exactly `<uuid>.<service>.<namespace>`, of any length.

    For TLS clients only and without alternative names: the control plane reads the common name itself,
    no verifier of host names ever sees it, and without a SPIFFE URI the mesh takes it for no peer. It is
    in the ledger before it is handed out, with the `term` for which it is to be renewed, if that is not the
    usual one; the key is kept nowhere. Raises RequestError for a name that is not three DNS-1123 labels or a
    validity that is not positive, IssuerError, StateError.
    """
    _require_whole(name)
    pair = issue_pair(issuer, Usage.PROXY, Names(str(name)), validity, now)
    signer = issuer.signer_of(pair.chain_pem)
    ledger.record(
        LedgerEntry.issued(pair.leaf.serial, name, now, pair.leaf.not_after, claim_within, signer, term)
    )
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
    """Issue the same for a key that stays where it was made.

    `name` is what whoever asks was found to be entitled to, and `joined_by` by what; of the request only the
    key is taken. Raises as `issue_proxy`, and what `judge` does, which the ledger asks as it takes it in.
    """
    _require_whole(name)
    shown = SignedRequest(request.csr_pem)
    leaf, chain_pem = sign(issuer, Usage.PROXY, Names(str(name)), validity, shown, now)
    signer = issuer.signer_of(chain_pem)
    ends = leaf.not_after, claim_within
    ledger.record(LedgerEntry.issued(leaf.serial, name, now, *ends, signer, term, joined_by), judge)
    return SignedProxy(name, leaf.serial, leaf.not_before, leaf.not_after, chain_pem)


def _require_whole(name: ProxyName) -> None:
    try:
        whole = ProxyName.parse(str(name)) == name
    except ProxyNameError as error:
        raise RequestError(str(error)) from error
    if not whole:
        raise RequestError(f"{str(name)[:200]!r} does not consist of a UUID, a service and a namespace")
