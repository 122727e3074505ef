"""Terms that hold for every proxy of the mesh: trust domain, TLS, headers, tracing, logs and resilience."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from catalog.store.settings import DenialReasons, HeaderLimits
from meshwright.mesh.config import TlsVersion, Tracing
from meshwright.mesh.long_lived import LongLived
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.policies.resilience import Resilience
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.telemetry import AccessLog, ExtensionService
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once


@dataclass(frozen=True, slots=True)
class TlsRange:
    """The TLS versions, cipher suites and curves a proxy may speak inside the mesh; empty is its default."""

    minimum: TlsVersion
    maximum: TlsVersion
    cipher_suites: tuple[str, ...] = ()
    ecdh_curves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AccessLogPolicy:
    """What access logs are, `by` a Telemetry; None is as proxies have it by themselves.

    `collector` is who is told of them, where the log is exported.
    """

    by: PolicyKey | None = None
    log: AccessLog = field(default_factory=AccessLog)
    collector: ExtensionService | None = None


@hashed_once
@dataclass(frozen=True, slots=True)
class MeshTerms(CachedHash):
    """What holds for every proxy of the mesh: whom it believes, how it speaks TLS, which headers it takes.

    `denials`: to whom it says why it has denied a request. `tracing`: whom it tells of all. `resilience`:
    what it does about endpoints that fail. `logs`: what it writes of requests and connections.
    `long_lived`: which HTTP upgrades it passes, and when it ends quiet TCP connections.
    """

    trust_domain: TrustDomain
    tls: TlsRange
    headers: HeaderLimits
    denials: DenialReasons = DenialReasons.CALLERS
    tracing: Tracing | None = None
    resilience: Resilience = field(default_factory=Resilience)
    logs: AccessLogPolicy = field(default_factory=AccessLogPolicy)
    long_lived: LongLived = field(default_factory=LongLived)

    @property
    def of_destinations(self) -> "MeshTerms":
        """What of it concerns destinations: what is denied, asked, told and written does not."""
        return shared_terms(self.trust_domain, self.tls, self.headers, resilience=self.resilience)


shared_terms: Final = lru_cache(64)(MeshTerms)
"""The very same for all policies: they stand in the keys of whatever is made once for a mesh."""
