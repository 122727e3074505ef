"""Service certificates for what the catalog needs, kept in step with the mesh's configuration."""

import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from certs.errors import CertificateError
from certs.issuer import Issuer
from certs.manager import CertificateManager
from certs.material import ServiceCertificate
from controller.wave import Material
from mesh.identity import ServiceIdentity
from mesh.names import Namespace
from mesh.objects import ObjectKey, Origin, Problem, Severity


def spread() -> float:
    """Return a random number from -1 to 1, for validities that do not all end at once."""
    return random.uniform(-1, 1)  # noqa: S311 - it spreads load, it protects nothing


class CertificateKeeper:
    """Issues what is needed and forgets what is not; for one caller at a time, in whatever thread.

    `issued` is told how many certificates were made anew.
    """

    def __init__(
        self,
        issuer: Issuer,
        state: Path,
        issued: Callable[[int], None],
        jitter: Callable[[], float] = spread,
    ) -> None:
        self._issuer = issuer
        self._state = state
        self._issued = issued
        self._jitter = jitter
        self._validity: timedelta | None = None
        self._manager: CertificateManager | None = None
        self._failed = False
        self.certificates: Mapping[ServiceIdentity, ServiceCertificate] = MappingProxyType({})

    def needs_work(self, now: datetime) -> bool:
        """Say whether a certificate is due, or could not be issued when it was needed."""
        return self._failed or (self._manager is not None and bool(self._manager.due(now)))

    def ensure(
        self, needed: Mapping[ServiceIdentity, tuple[str, ...]], validity: timedelta, now: datetime
    ) -> tuple[Material, tuple[Problem, ...]]:
        """Return a certificate for each identity (the one before where none can be issued), and problems."""
        manager = self._manager_for(validity)
        before = {identity: held.serial for identity, held in self.certificates.items()}
        found: dict[ServiceIdentity, ServiceCertificate] = {}
        problems = []
        for identity, dns_names in needed.items():
            try:
                found[identity] = manager.ensure(identity, dns_names, now)
            except CertificateError as error:
                problems.append(_problem(identity, error))
                if (held := manager.get(identity)) is not None:
                    found[identity] = held
        for identity in manager.certificates().keys() - needed.keys():
            manager.forget(identity)
        self._failed = bool(problems)
        self.certificates = MappingProxyType(found)
        self._issued(sum(1 for each in found.values() if before.get(each.identity) != each.serial))
        return Material(self.certificates, manager.trust_bundle()), tuple(problems)

    def _manager_for(self, validity: timedelta) -> CertificateManager:
        """Return the manager for this validity; another one begins with the stored certificates."""
        if self._manager is None or validity != self._validity:
            self._manager = CertificateManager(self._issuer, self._state, validity, self._jitter)
            self._validity = validity
        return self._manager


def _problem(identity: ServiceIdentity, error: CertificateError) -> Problem:
    return Problem(
        "certificate-not-issued",
        Severity.ERROR,
        Origin("certificates"),
        ObjectKey("ServiceAccount", Namespace(identity.namespace), identity.service_account),
        "",
        "",
        str(error),
    )
