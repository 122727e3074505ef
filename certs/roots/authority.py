"""The mesh's own Authority during a change of its root: one root signs, and others may be trusted too."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Self

from certs.contract import CertificateRequest
from certs.issuers.authority import CertificateAuthority
from certs.issuers.root import Root
from certs.keys.bundle import TrustBundle
from certs.keys.leaf import is_signed_by_bundle
from certs.roots import rotation_file as kept
from certs.roots.rotation import Fingerprint, Rotation
from certs.state.sealing import PLAIN, Seal
from meshwright.mesh.names import TrustDomain


class ChangingAuthority:
    """An Authority with a root that can be changed while other threads use the Authority.

    `rotation` is the change under way, or None. Steps are for one caller at a time.
    """

    def __init__(self, state: Path, trust_domain: TrustDomain, now: datetime, seal: Seal = PLAIN) -> None:
        """Open the CA; create it at the first start. Raises StateError as CertificateAuthority.open does."""
        self._state = state
        self._trust_domain = trust_domain
        self._seal = seal
        self._take(kept.recovered(state), now)

    @classmethod
    def open(cls, state: Path, trust_domain: TrustDomain, now: datetime, seal: Seal = PLAIN) -> Self:
        """Open the CA of a state directory, and continue a root rotation under way."""
        return cls(state, trust_domain, now, seal)

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

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Sign a request with the signing root; see CertificateAuthority."""
        return self._signer.issue(request, now)

    def begin(self, now: datetime, since: datetime | None = None, root: Root | None = None) -> Rotation:
        """Start a change to a new root, or to the given one, which is trusted from now on.

        `since` is the recorded begin of the stage, `now` by default. Raises StateError.
        """
        rotation = kept.begin(self._state, self._trust_domain, now, self._seal, since, root)
        self._take(rotation, now)
        return rotation

    def step(self, rotation: Rotation | None, now: datetime) -> None:
        """Store and apply the next step of a root rotation; None ends the rotation. Raises StateError."""
        if rotation is None:
            kept.end(self._state)
        else:
            kept.require_signer(self._state, self._trust_domain, rotation, now, self._seal)
            kept.keep(self._state, rotation)
        self._take(rotation, now)

    def _take(self, rotation: Rotation | None, now: datetime) -> None:
        signer = CertificateAuthority.open(self._state, self._trust_domain, now, self._seal)
        own = TrustBundle.from_pems([signer.trust_bundle()])
        other = TrustBundle.from_pems([] if rotation is None else [kept.other_roots(self._state)])
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
        # Publish the trusted roots before the signer, so that no certificate is seen before its root.
        self._trusted = both if trusts_both else own
        self._signer = signer
