"""Webhook of a server: certificate, second mesh for trials, and registration in the cluster.

A server without a cluster does not import this module.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from socket import socket

import structlog

from catalog.lint.lint import DriverChecks
from catalog.store.settings import MeshSettings
from certs.contract import Issuer
from certs.errors import CertificateError
from certs.keys.material import ServerCertificate
from certs.renewal import look_again_after
from certs.server import webhook_certificate
from certs.state.stored_pair import Pairs
from meshwright.admin.http.servers import serving
from meshwright.admin.metrics.registry import Metrics
from meshwright.controller.kubernetes.cluster import Cluster
from meshwright.delivery.mesh_sources import MeshSources
from meshwright.kube.builtin import MUTATING
from meshwright.kubernetes.admission.configuration import Configuration, configuration
from meshwright.kubernetes.admission.judge import Judge, MeshMoment, yielding
from meshwright.kubernetes.admission.place import Place
from meshwright.kubernetes.admission.registration import Registration
from meshwright.kubernetes.admission.server import application
from meshwright.kubernetes.admission.trial import Trial
from meshwright.kubernetes.injection.webhook.registration import PATH
from meshwright.kubernetes.injection.webhook.registration import configuration as pods
from meshwright.kubernetes.injection.webhook.server import Injection
from meshwright.tls.key_pair import load_key_pair

_log = structlog.get_logger("controller.webhook")


class WebhookTls:
    """TLS context of the webhook; a renewed certificate is loaded into the same context."""

    def __init__(self, issuer: Issuer, pairs: Pairs, host: str, now: datetime) -> None:
        """Make the first certificate; raise CertificateError if none can be made."""
        self._issuer, self._pairs, self._host = issuer, pairs, host
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._logged_error = ""
        self._shown = self._made(now)
        self._load(self._shown)

    @property
    def chain(self) -> bytes:
        """Return the present certificate with intermediate certificates, as PEM."""
        return self._shown.chain_pem

    async def renewing(self, clock: Callable[[], datetime]) -> None:
        """Renew the certificate when due, until cancelled. After an error the old one stays."""
        while True:
            await asyncio.sleep(look_again_after(self._shown, clock()).total_seconds())
            await self.look(clock())

    async def look(self, now: datetime) -> None:
        """Renew the certificate if due or if another CA signs; log an error once."""
        try:
            await asyncio.to_thread(self.renew, now)
        except (CertificateError, OSError) as error:  # OSError: TLS errors, or too many open files
            if str(error) != self._logged_error:
                _log.error("webhook certificate not renewed", reason=str(error))
            self._logged_error = str(error)
        else:
            self._logged_error = ""

    def renew(self, now: datetime) -> None:
        """Load a new certificate for the webhook if due, or if another CA signs now.

        Raises CertificateError.
        """
        certificate = self._made(now)
        # Loading into the same context is safe for connections that are open.
        if certificate.serial != self._shown.serial:
            self._load(certificate)
            self._shown = certificate

    def _made(self, now: datetime) -> ServerCertificate:
        return webhook_certificate(self._issuer, self._pairs, now, self._host)

    def _load(self, certificate: ServerCertificate) -> None:
        load_key_pair(self.context, certificate.chain_pem, certificate.key.reveal())


class Webhook:
    """The webhook with all parts, not yet running. `place` is the address for API servers."""

    def __init__(
        self,
        place: Place,
        cluster: Cluster,
        *,
        issuer: Issuer,
        pairs: Pairs,
        gathering: MeshSources,
        settings: MeshSettings,
        further: Callable[[], DriverChecks],
        metrics: Metrics,
        clock: Callable[[], datetime],
        register: bool,
        injection: Injection | None = None,
        revision: str = "",
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make the webhook's parts; raise CertificateError if the first certificate cannot be made."""
        self.tls = WebhookTls(issuer, pairs, place.host, clock())
        self._metrics, self._clock = metrics, clock
        self._judge = Judge(
            cluster.source.name,
            cluster.api.name,
            lambda: MeshMoment(gathering.sources.merged, gathering.admissions),
            lambda: Trial(settings, further, yielding),
        )

        def wanted() -> Configuration:
            scope = cluster.scope.expressions()
            return configuration(place, issuer.trust_bundle(), scope, cluster.home, revision)

        def injecting() -> Configuration:
            client, mesh = place.client_config(PATH), "" if injection is None else injection.mesh
            return pods(client, issuer.trust_bundle(), cluster.home, revision=revision, mesh=mesh)

        self.injection = injection
        self.registrations: tuple[Registration, ...] = ()
        if register:
            self.registrations += (Registration(cluster.api, wanted, clock, leads=leads),)
        if register and injection is not None:
            what = "injection webhook"
            self.registrations += (Registration(cluster.api, injecting, clock, MUTATING, what, leads),)

    @property
    def values(self) -> int:
        """The number of derived values in the cache of the policy webhook."""
        return self._judge.values

    def remarks(self) -> tuple[str, ...]:
        """Return remarks for operators about problems of injection and of the webhooks' registrations."""
        injection = () if self.injection is None else self.injection.remarks()
        return (
            *injection,
            *(remark for registration in self.registrations for remark in registration.remarks()),
        )

    def waited_for(self) -> tuple[str, ...]:
        """Return the webhook registrations not attempted successfully yet.

        A forbidden registration is reported by `remarks` instead.
        """
        return tuple(
            f"the {registration.subject}'s registration"
            for registration in self.registrations
            if not registration.is_settled
        )

    async def look(self) -> None:
        """Renew the certificate and update the registrations after a change of the root."""
        await self.tls.look(self._clock())
        self.look_at_cluster()

    def look_at_cluster(self) -> None:
        """Check the objects in the cluster now, because the roots have changed, or this server leads now."""
        if self.injection is not None:
            self.injection.look()
        self._look_again()

    def _look_again(self) -> None:
        """Check the registrations now, because CA certificates or namespaces may have changed."""
        for registration in self.registrations:
            registration.look()

    def works(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of all tasks of the webhook."""
        yield "webhook certificate", self.tls.renewing(self._clock)
        yield "webhook's second mesh", self._judge.tidying()
        for registration in self.registrations:
            yield f"the {registration.subject}'s registration", registration.run()
        if self.injection is not None:
            yield from self.injection.works(self._look_again)

    @asynccontextmanager
    async def serving(self, listening: socket) -> AsyncIterator[None]:
        """Serve API servers while the context lasts, with the configuration of injection loaded."""
        if self.injection is not None:
            await self.injection.first()
        app = application(self._judge, self._metrics.reviewed)
        if self.injection is not None:
            self.injection.add_to(app)
        async with serving(app, listening, self.tls.context):
            yield
