"""The mesh's own Authority during a change of its root: one root signs, and others may be trusted too."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from certs.contract import CertificateRequest
from certs.errors import StateError
from certs.issuers.authority import CertificateAuthority
from certs.issuers.root import Root, fingerprint_of_ca, new_root
from certs.issuers.stored_ca import StoredCa, Unreadable, readable, root_of, trusted_roots
from certs.keys.bundle import TrustBundle
from certs.keys.leaf import is_signed_by_bundle
from certs.ledger.entry import given_roots
from certs.roots.authority_state import AuthorityState
from certs.roots.authority_store import AuthorityStore, CaSlot, Overtaken, StoredAuthority, changed
from certs.roots.rotation import Fingerprint, Rotation, begun
from meshwright.mesh.names import TrustDomain


class ChangingAuthority:
    """An Authority with a root that can be changed while other threads use the Authority.

    `rotation` is the change under way, or None. Steps are for one caller at a time.
    """

    def __init__(self, authority_store: AuthorityStore, trust_domain: TrustDomain, now: datetime) -> None:
        """Open the CA, and continue a root rotation under way; create the CA at the first start.

        Raises StateError if the CA is damaged or cannot sign at `now`.
        """
        self._authority_store = authority_store
        self._trust_domain = trust_domain

        def created(state: AuthorityState) -> AuthorityState:
            return state if state.has_ca else replace(state, ca=StoredCa.of(new_root(trust_domain, now)))

        authority_store.recover()
        self._take(changed(authority_store, created), now)

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the trust domain of the certified identities."""
        return self._trust_domain

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the signing root."""
        return self._signer.fingerprint

    @property
    def other(self) -> str:
        """Return the fingerprint of the root beside the signing one; empty without a root rotation."""
        return "" if self.rotation is None else self.rotation.other

    @property
    def leaving(self) -> str:
        """Return the fingerprint of the root to be replaced next; the signing root without a change."""
        return self.fingerprint if self.rotation is None else self.rotation.leaving

    @property
    def not_after(self) -> datetime:
        """Return the end of the signing root's validity."""
        return self._signer.not_after

    def trust_bundle(self) -> bytes:
        """Return the roots to trust now, as PEM."""
        return self._trusted.pem

    def signing_bundle(self) -> bytes:
        """Return the signing root, as PEM."""
        return self._signer.trust_bundle()

    def trusts(self, signer: str) -> bool:
        """Return whether a root is trusted now.

        True without a fingerprint, because TLS has verified the peer.
        """
        if not signer:
            return True
        return signer in ((self.fingerprint,) if self.rotation is None else self.rotation.trusted)

    def signer_of(self, chain_pem: bytes) -> str:
        """Return the fingerprint of the root, one of the two, above a certificate.

        Empty for another root.
        """
        if self.rotation is None or is_signed_by_bundle(chain_pem, self.signing_bundle()):
            return self._signer.signer_of(chain_pem)
        return self.rotation.other if is_signed_by_bundle(chain_pem, self._other.pem) else ""

    def trusted_by(self, bundle_pem: bytes) -> frozenset[Fingerprint]:
        """Return which of the two roots a bundle trusts; an intermediate counts by the roots above it."""
        bundle = TrustBundle.from_pems([bundle_pem])
        own = self._own.items()
        return frozenset(
            fingerprint for fingerprint, roots in own if roots.fingerprints and bundle.holds(roots)
        )

    def confirmed(self, bundle_digest: str) -> frozenset[Fingerprint]:
        """Return the roots of the bundle with this digest; empty for a bundle of other roots."""
        return self._bundles.get(bundle_digest, frozenset())

    def given(self, roots: str) -> frozenset[Fingerprint] | None:
        """Return the roots that were issued with a certificate, by the ledger's `roots`; None if unknown."""
        return self._given.get(roots)

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Sign a request with the signing root; see CertificateAuthority."""
        return self._signer.issue(request, now)

    def begin(
        self,
        now: datetime,
        since: datetime | None = None,
        root: Root | None = None,
        store: AuthorityStore | None = None,
    ) -> Rotation:
        """Start a change to a new root, or to the given one, which is trusted from now on.

        Only without a change under way. `since` is the recorded begin of the stage, `now` by default;
        certificates issued later by this server have the roots of this stage. `store` is as for `step`.
        Raises StateError, also if the present root cannot sign.
        """
        other = root or new_root(self._trust_domain, now)
        rotation = begun(Fingerprint(self.fingerprint), Fingerprint(other.fingerprint), since or now)

        def change(state: AuthorityState) -> AuthorityState:
            self._root(CaSlot.SIGNER, state.ca, now)
            return replace(state, other=StoredCa.of(other), rotation=rotation)

        self._replace(change, now, store)
        return rotation

    def step(self, rotation: Rotation | None, now: datetime, store: AuthorityStore | None = None) -> None:
        """Store and apply the next step of a root rotation; None ends the rotation. Raises StateError.

        If another server has taken a step first, that step is applied, and Overtaken is raised. `store` is
        another view of the same store, for example the one of a leader, whose late writes are refused.
        """

        def change(state: AuthorityState) -> AuthorityState:
            if rotation is not None:
                self._require_signers(state, rotation, now)
            return state.stepped(rotation)

        self._replace(change, now, store)

    def look(self, now: datetime) -> bool:
        """Apply the step of another server, if it has taken one; return whether it has. Raises StateError."""
        there = self._authority_store.read()
        if self._is_present(there.state):
            return False
        self._take(there, now)
        return True

    def _replace(
        self,
        change: Callable[[AuthorityState], AuthorityState],
        now: datetime,
        store: AuthorityStore | None,
    ) -> None:
        """Store and apply a step from the present root rotation, whatever else of the state has changed."""
        store = store or self._authority_store
        there = store.read()
        while self._is_present(there.state):
            try:
                there = store.replace(there.revision, change(self._known(there.state)))
            except Overtaken as overtaken:
                there = overtaken.there
            else:
                self._take(there, now)
                return
        self._take(there, now)
        raise Overtaken(self._authority_store.place, there)

    def _is_present(self, state: AuthorityState) -> bool:
        """Return whether the root rotation and the key of the signing CA are still those of this server."""
        names = self._authority_store.names(CaSlot.SIGNER)
        certificate, known = None if state.ca is None else readable(state.ca.certificate), self._known(state)
        # By the key: an operator may have renewed the certificate, which may be expired too.
        signer = certificate and fingerprint_of_ca(names.certificate, certificate, names.mend)
        return (readable(known.rotation), signer) == (self.rotation, self.fingerprint)

    def _known(self, state: AuthorityState) -> AuthorityState:
        """Return the state with the rotation of this server in the place of a record damaged meanwhile.

        The next step then writes the record again. A server that knows of no rotation cannot repair it.
        """
        is_damaged = isinstance(state.rotation, Unreadable) and self.rotation is not None
        return replace(state, rotation=self.rotation) if is_damaged else state

    def _require_signers(self, state: AuthorityState, rotation: Rotation, now: datetime) -> None:
        """Raise StateError if a root cannot sign that must sign now or after the change.

        Otherwise the server would not start, or an aborted change would never end.
        """
        before = rotation if self.rotation is None else self.rotation
        slots = ((CaSlot.SIGNER, before.signer, state.ca), (CaSlot.OTHER, before.other, state.other))
        for slot, fingerprint, stored in slots:
            if fingerprint in (rotation.signer, rotation.new):
                self._root(slot, stored, now)

    def _root(self, slot: CaSlot, stored: StoredCa | None, now: datetime) -> Root:
        return root_of(stored, self._authority_store.names(slot), self._trust_domain, now)

    def _take(self, there: StoredAuthority, now: datetime) -> None:
        """Apply a stored state: sign with its CA, and trust the roots of its root rotation."""
        state, rotation = there.state, readable(there.state.rotation)
        if not state.has_ca:
            raise StateError(
                f"{self._authority_store.place} has no CA any more; this server still signs with the CA that "
                "it has, and a restart would make another one: restore the CA from a backup before"
            )
        signer = CertificateAuthority(self._root(CaSlot.SIGNER, state.ca, now), self._trust_domain)
        own = TrustBundle.from_pems([signer.trust_bundle()])
        beside = None if rotation is None else state.other
        other = trusted_roots(beside, self._authority_store.names(CaSlot.OTHER))
        both = own.union(other)
        trusts_both = rotation is not None and rotation.other in rotation.trusted
        roots = {Fingerprint(signer.fingerprint): own}
        if rotation is not None:
            roots[rotation.other] = other
        self.rotation: Rotation | None = rotation
        self._other = other
        self._own: Mapping[Fingerprint, TrustBundle] = roots
        self._bundles = {
            trust_bundle.digest: self.trusted_by(trust_bundle.pem) for trust_bundle in (own, other, both)
        }
        self._given = {given_roots(bundle.pem): self.trusted_by(bundle.pem) for bundle in (own, other, both)}
        # Publish the trusted roots before the signer, so that no certificate is seen before its root.
        self._trusted = both if trusts_both else own
        self._signer = signer
