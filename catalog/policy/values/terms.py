"""Terms for every proxy of the mesh: trust domain, TLS, headers, tracing, logs and resilience."""

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
    """Allowed TLS versions, cipher suites and curves inside the mesh; empty means the proxy's default."""

    minimum: TlsVersion
    maximum: TlsVersion
    cipher_suites: tuple[str, ...] = ()
    ecdh_curves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AccessLogPolicy:
    """Access log, `by` a Telemetry; `None` means the proxy's default.

    `collector` receives exported log entries.
    """

    by: PolicyKey | None = None
    log: AccessLog = field(default_factory=AccessLog)
    collector: ExtensionService | None = None


@hashed_once
@dataclass(frozen=True, slots=True)
class MeshTerms(CachedHash):
    """Terms that hold for every proxy of the mesh.

    `denials` selects the callers that get the reason of a denial. `tracing` is the export of traces.
    `resilience` is the handling of failing endpoints. `logs` are access logs. `long_lived` has the allowed
    HTTP upgrades, and the idle timeout of TCP connections.
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
        """The subset of terms that concerns the proxy's destinations."""
        return shared_terms(self.trust_domain, self.tls, self.headers, resilience=self.resilience)


shared_terms: Final = lru_cache(64)(MeshTerms)
"""Constructor that returns the same object for equal terms, because they are in the keys of shared values."""
