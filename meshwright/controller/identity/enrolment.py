"""Enrolment ports of the server, made from the server's parts."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from types import MappingProxyType

from certs.ledger.entry import LedgerEntry
from meshwright.controller.identity.join_tokens import OpenTokens
from meshwright.controller.identity.proxy_certificates import ProxyIssuing
from meshwright.controller.settings.settings import Settings
from meshwright.delivery.proxies.identity import MeshAuthenticator
from meshwright.enrolment.ejections import Ejections
from meshwright.enrolment.limits import EnrolmentLimits
from meshwright.enrolment.methods import joining, renewing
from meshwright.enrolment.proofs import certificate, join_token
from meshwright.enrolment.proofs.certificate import CertificateProof
from meshwright.enrolment.proofs.contract import Proof, ProofRefused, ProofUndecided
from meshwright.enrolment.proofs.join_token import JoinTokenProof
from meshwright.enrolment.proofs.registry import accepted
from meshwright.enrolment.server import EnrolmentPort
from meshwright.enrolment.service import Enrolment
from meshwright.enrolment.trust import Confirmations
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.traffic.traffic import Traffic
from xds.hooks import AuthenticationUnavailable, Peer, StreamRefused
from xds.server.tls import TlsIdentity


class EnrolmentPorts:
    """The joining port and the renewal port, each if an address is set.

    `counted` receives the method and result of each request. `contradicts` returns the reason why a name must
    not be certified. `confirmations`, `ejections` and `traffic` store the reports of machines.
    `open_tokens` opens the join tokens, and `further` are kinds of proof besides them.
    """

    def __init__(
        self,
        settings: Settings,
        proxies: ProxyIssuing,
        authenticator: MeshAuthenticator,
        clock: Callable[[], datetime],
        contradicts: Callable[[ProxyName], str],
        confirmations: Confirmations,
        ejections: Ejections,
        traffic: Traffic,
        counted: Callable[[str, str], None],
        open_tokens: OpenTokens,
        further: Mapping[str, Callable[[], Proof]] = MappingProxyType({}),
    ) -> None:
        self._settings = settings
        self._open_tokens = open_tokens
        self._proxies = proxies
        self._authenticator = authenticator
        self._clock = clock
        self._contradicts = contradicts
        self._further = further
        self._counted = counted
        self._limits = EnrolmentLimits()
        self._confirmations = confirmations
        self._ejections = ejections
        self._traffic = traffic

    @asynccontextmanager
    async def serving(self, tls: Callable[[], TlsIdentity]) -> AsyncIterator[Mapping[str, HostPort]]:
        """Serve machines while the context lasts; yield the addresses by port name.

        Raises CertificateError for unusable tokens or proofs, and ListenError.
        """
        settings, listening = self._settings, dict[str, HostPort]()
        async with AsyncExitStack() as stack:
            if settings.enrolment_address is not None:
                opening = await asyncio.to_thread(self._open_tokens)
                store = stack.enter_context(opening)
                token_pace = self._limits.by_token
                ours = {
                    join_token.KIND: lambda: JoinTokenProof(store, token_pace, time.monotonic),
                    **self._further,
                }
                proofs = accepted(settings.enrolment_proofs, ours)
                port = joining(self._enrolment(proofs), tls, self._limits, self._counted)
                listening["enrolment"] = await _started(stack, port, settings.enrolment_address, settings)
            if settings.renewal_address is not None:
                # Renewal needs no proofs for joining: the present certificate is the proof.
                port = renewing(self._enrolment({}), tls, self._limits, self._counted)
                listening["renewal"] = await _started(stack, port, settings.renewal_address, settings)
            yield listening

    def _enrolment(self, proofs: Mapping[str, Proof]) -> Enrolment:
        return Enrolment(
            self._proxies,
            proofs,
            CertificateProof(self._holder_of, self._prepare),
            clock=self._clock,
            monotonic=time.monotonic,
            limits=self._limits,
            contradicts=self._contradicts,
            confirmations=self._confirmations,
            ejections=self._ejections,
            traffic=self._traffic,
            ask_again_seconds=self._settings.trust_seconds,
        )

    async def _prepare(self, shown: bytes, address: str) -> None:
        """Look up a certificate that is unknown here, in a ledger that is shared; raise ProofUndecided."""
        try:
            await self._authenticator.prepare(Peer(shown, address))
        except AuthenticationUnavailable as error:
            raise ProofUndecided("the shared ledger cannot be asked for this certificate now") from error

    def _holder_of(self, shown: bytes, address: str) -> LedgerEntry:
        """Return the ledger entry of a certificate, with the same checks as for every RPC."""
        try:
            return self._authenticator.admit(Peer(shown, address)).entry
        except StreamRefused as refused:
            raise ProofRefused(refused.reason, proof=certificate.KIND) from refused


async def _started(stack: AsyncExitStack, port: EnrolmentPort, at: HostPort, settings: Settings) -> HostPort:
    number = await port.start(str(at))
    stack.push_async_callback(port.stop, settings.drain_seconds)
    return HostPort(at.host, number)
