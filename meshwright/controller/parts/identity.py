"""Parts for certificates, trust, and the change of the mesh's root."""

import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from certs.contract import IssuerKind
from certs.custody import AuthorityWithLedger
from certs.issuers.mounted_secrets import MountedSecrets
from certs.lifetimes import ProxyTerms
from certs.roots.secrets import Secrets
from certs.state.pair_files import PairFiles
from meshwright.controller.identity.join_tokens import JoinTokens, OpenTokens
from meshwright.controller.identity.ledger_age import OlderLedger
from meshwright.controller.identity.proxy_certificates import ProxyIssuing
from meshwright.controller.identity.server_tls import ServerTls
from meshwright.controller.issuing.foreign_ca import ForeignAuthorityWatch, patience
from meshwright.controller.issuing.issuing import IssuerAccess
from meshwright.controller.issuing.roots_taken import hearing
from meshwright.controller.parts.cluster_parts import ClusterParts, saying
from meshwright.controller.parts.core import CoreParts
from meshwright.controller.parts.proxies import ProxyParts
from meshwright.controller.roots.change import RootChange
from meshwright.controller.roots.declared import DeclaredRoots, DeclaredRule
from meshwright.controller.roots.rotation import declared_roots, root_change, roots_changed
from meshwright.delivery.proxies.unknown_serials import UnknownSerials, unknown_serials
from meshwright.enrolment.trust import Confirmations
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.contract.contexts import AcknowledgedSecrets

if TYPE_CHECKING:
    from meshwright.controller.sharing.issuer_servers import IssuerServers
    from meshwright.controller.sharing.root_servers import RootServers


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityParts:
    """The CA with its ledger, the issuer of service certificates, and the change of the root.

    `proxy_certificates` issues and revokes on request, `tokens` makes join tokens, whose store `open_tokens`
    opens. `confirmations` are the CA
    bundles confirmed by machines. `roots` is `None` if the CA is not managed by this server; `foreign_ca`
    then follows the CA. `unknown_serials` is `None` if the ledger is not shared with other servers, as
    `others`, the other servers in a change of the root, and `issuer_servers`, those that have sidecars too.
    """

    opened: AuthorityWithLedger
    issuing: IssuerAccess
    proxy_certificates: ProxyIssuing
    tokens: JoinTokens
    open_tokens: OpenTokens
    older_ledger: OlderLedger
    confirmations: Confirmations
    tls: ServerTls
    roots: RootChange | None
    declared_roots: DeclaredRoots
    foreign_ca: ForeignAuthorityWatch
    unknown_serials: UnknownSerials | None
    others: "RootServers | None" = None
    issuer_servers: "IssuerServers | None" = None

    def works(
        self, taken: Callable[[], Iterator[AcknowledgedSecrets]], clock: Callable[[], datetime]
    ) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of all tasks; `taken` yields the secrets acknowledged by proxies."""
        yield "issuer", self.issuing.tending(clock)
        yield "issuer's roots", hearing(self.issuing.opened.issuer, taken, clock, self.issuer_servers)
        yield "server certificate", self.tls.renewing(clock)
        if self.opened.opened_authority.tend is not None:
            yield "authority", self.foreign_ca.running(clock)
        if self.others is not None:
            yield from self.others.works(self.roots, self.declared_roots)
            return
        yield "declared roots", self.declared_roots.run()
        if self.roots is not None:
            yield "root change", self.roots.stepping()


def proxy_issuing(core: CoreParts, opened: AuthorityWithLedger) -> ProxyIssuing:
    """Return the issuer of proxy certificates, with lifetimes from the settings in force."""

    def terms() -> ProxyTerms:
        # Read for each certificate, because the lifetimes can change while the server runs.
        settings = core.reloading.settings
        within = settings.proxy_claim_days
        return ProxyTerms(
            timedelta(days=settings.proxy_certificate_days),
            None if within is None else timedelta(days=within),
        )

    def issued() -> None:
        core.metrics.issued("proxy", IssuerKind.BUILT_IN.value)

    return ProxyIssuing(opened, core.clock, terms, issued)


def join_identity(
    core: CoreParts,
    opened: AuthorityWithLedger,
    issuing: IssuerAccess,
    certificates: ProxyIssuing,
    in_cluster: ClusterParts,
    proxies: ProxyParts,
    open_tokens: OpenTokens,
    others: "RootServers | None" = None,
    issuer_servers: "IssuerServers | None" = None,
) -> IdentityParts:
    """Connect all parts that depend on CA certificates with the change of the root.

    Raises CertificateError.
    """
    settings, confirmations = core.settings, Confirmations()
    patient = patience(opened, confirmations, settings.trust_seconds)
    pairs = PairFiles(settings.state, opened.seal)
    tls = ServerTls(opened.authority, pairs, settings.ads_hosts, core.clock(), patient)
    webhook, pods = in_cluster.webhook, in_cluster.pod_roots
    changed = partial(roots_changed, core.delivery, tls, proxies.events, webhook, pods, core.clock)
    rule = DeclaredRule(core.view)
    change = _root_change(
        core, opened, issuing, tls, confirmations, in_cluster, proxies, changed, rule, others
    )
    return IdentityParts(
        opened=opened,
        issuing=issuing,
        proxy_certificates=certificates,
        tokens=JoinTokens(open_tokens, opened.authority.trust_bundle, core.clock),
        open_tokens=open_tokens,
        older_ledger=OlderLedger(),
        confirmations=confirmations,
        tls=tls,
        roots=change,
        declared_roots=_declared_roots(core, opened, change, rule, in_cluster),
        foreign_ca=ForeignAuthorityWatch(opened, changed),
        unknown_serials=unknown_serials(opened.ledger, time.monotonic),
        others=others,
        issuer_servers=issuer_servers,
    )


def _root_change(
    core: CoreParts,
    opened: AuthorityWithLedger,
    issuing: IssuerAccess,
    tls: ServerTls,
    confirmations: Confirmations,
    in_cluster: ClusterParts,
    proxies: ProxyParts,
    changed: Callable[[], Awaitable[None]],
    rule: DeclaredRule,
    others: "RootServers | None",
) -> RootChange | None:
    return root_change(
        opened,
        core.delivery,
        tls,
        proxies.pages,
        confirmations,
        in_cluster.webhook,
        in_cluster.pod_roots,
        changed,
        rule,
        core.clock,
        others,
        elsewhere=issuing.opened.kind is not IssuerKind.BUILT_IN,
    )


def _declared_roots(
    core: CoreParts,
    opened: AuthorityWithLedger,
    change: RootChange | None,
    rule: DeclaredRule,
    in_cluster: ClusterParts,
) -> DeclaredRoots:
    settings, reporter = core.settings, in_cluster.reporter
    folder, domain = settings.root_secrets, TrustDomain(settings.trust_domain)
    secrets = Secrets(opened.store, None if folder is None else MountedSecrets(folder, domain))
    say = saying(core.delivery, reporter, "roots")
    return declared_roots(opened, core.delivery, change, rule, secrets, say, reporter, core.clock)
