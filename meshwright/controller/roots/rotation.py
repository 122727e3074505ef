"""Change of the mesh's root, connected with the parts that it concerns."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from certs.custody import AuthorityWithLedger
from certs.ledger.rebuilding import REBUILT
from certs.roots.authority import ChangingAuthority
from certs.roots.evidence import ServerEvidence
from certs.roots.proxy_evidence import RootAcknowledgements
from certs.roots.rotation import Fingerprint
from certs.roots.secrets import Secrets
from meshwright.controller.drivers import DriverPages
from meshwright.controller.identity.server_tls import ServerTls
from meshwright.controller.roots.change import OtherServers, RootChange
from meshwright.controller.roots.declared import DeclaredRoots, DeclaredRule
from meshwright.delivery.assembly import Delivery
from meshwright.delivery.timing.time_slices import in_slices
from meshwright.enrolment.trust import Confirmations
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problems
from meshwright.sidecars.contract.events import Broker, RootsChanged

if TYPE_CHECKING:
    from meshwright.controller.kubernetes.webhook import Webhook
    from meshwright.kubernetes.injection.credentials.roots_writer import PodRoots
    from meshwright.kubernetes.status.reporter import Reporter


def root_change(
    authority_with_ledger: AuthorityWithLedger,
    delivered: Delivery,
    tls: ServerTls,
    pages: DriverPages,
    confirmations: Confirmations,
    webhook: "Webhook | None",
    pods: "PodRoots | None",
    stepped: Callable[[], Awaitable[None]],
    rule: DeclaredRule,
    clock: Callable[[], datetime],
    others: OtherServers | None,
    *,
    elsewhere: bool,
) -> RootChange | None:
    """Return the change of the root, or `None` if the CA is not managed by this server.

    `stepped` informs all parts that depend on CA certificates; `elsewhere` is True if another issuer signs
    service certificates. `others` are the other servers of the mesh, if any.
    """
    authority = authority_with_ledger.opened_authority.changing
    if authority is None:
        return None

    async def said() -> RootAcknowledgements:
        taken = None if elsewhere else await in_slices(pages.taken())
        here = (proxy.name for proxy in delivered.registry.connected())
        last = confirmations.all()
        confirmed = {
            name: frozenset.intersection(*map(authority.confirmed, confirmation.possible))
            for name, confirmation in last.items()
        }
        ours = _ours(authority, tls, webhook, pods)
        times = {name: confirmation.at for name, confirmation in last.items()}
        return RootAcknowledgements(taken, frozenset(here), confirmed, ours, times)

    held = "" if authority_with_ledger.rebuilding is None else REBUILT
    return RootChange(authority, authority_with_ledger.ledger, said, stepped, clock, held, rule, others)


def declared_roots(
    authority: AuthorityWithLedger,
    delivered: Delivery,
    change: RootChange | None,
    rule: DeclaredRule,
    secrets: Secrets,
    report: Callable[[Problems], None],
    reporter: "Reporter | None",
    clock: Callable[[], datetime],
) -> DeclaredRoots:
    """Return the controller of the CAs declared by MeshRootCertificates, with the needed reporters."""

    def state(states: Mapping[ObjectKey, str]) -> None:
        if reporter is not None:
            reporter.stated(states)

    whose = authority.opened_authority
    return DeclaredRoots(
        lambda: delivered.loop.state.view,
        whose.changing,
        change,
        rule,
        whose.why_not,
        secrets,
        report,
        state,
        clock,
    )


async def roots_changed(
    delivered: Delivery,
    tls: ServerTls,
    events: Broker,
    webhook: "Webhook | None",
    pods: "PodRoots | None",
    clock: Callable[[], datetime],
) -> None:
    """Inform all parts that depend on CA certificates."""
    await tls.look(clock())
    if webhook is not None:
        await webhook.look()
    if pods is not None:
        pods.look()
    delivered.gathering.changed()
    events.publish(RootsChanged())


def _ours(
    authority: ChangingAuthority, tls: ServerTls, webhook: "Webhook | None", pods: "PodRoots | None"
) -> ServerEvidence:
    identity = tls.identity()
    shown = (identity.chain,) if webhook is None else (identity.chain, webhook.tls.chain)
    # A registration owned by another control plane does not call our webhook.
    asked = (
        []
        if webhook is None
        else [registration for registration in webhook.registrations if not registration.state.another_s]
    )
    held = [authority.trusted_by(item.trusted) for item in asked]
    joining = None if pods is None else pods.trusted
    return ServerEvidence(
        shown=frozenset(Fingerprint(authority.signer_of(item)) for item in shown),
        trusted=authority.trusted_by(identity.trust_bundle),
        webhook=frozenset.intersection(*held) if held else None,
        webhook_error=next((item.state.error for item in asked if item.state.error), ""),
        pods=None if joining is None else authority.trusted_by(joining),
        pods_error="" if pods is None else pods.error,
    )
