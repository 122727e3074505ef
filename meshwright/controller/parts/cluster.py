"""Parts of a server with a Kubernetes cluster as a source.

Only `meshwright.controller.wiring` imports this module, and only if the settings name a cluster, because the
libraries behind it take some megabytes of memory.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from certs.custody import AuthorityWithLedger
from certs.state.pair_files import PairFiles
from meshwright.controller.delivery import mesh_settings
from meshwright.controller.drivers import MeshDrivers
from meshwright.controller.gateway.certificate import GATEWAY_SECRETS, GatewaySecret
from meshwright.controller.identity.proxy_certificates import ProxyIssuing
from meshwright.controller.issuing.issuing import IssuerAccess, making
from meshwright.controller.kubernetes.cluster import ANSWER, Cluster, ClusterAccess, cluster
from meshwright.controller.kubernetes.injection import configured_by, injection_of
from meshwright.controller.kubernetes.token_reviews import kubernetes_proof
from meshwright.controller.kubernetes.webhook import Webhook
from meshwright.controller.parts.cluster_parts import ClusterParts, GatewayKeeper, saying
from meshwright.controller.parts.core import CoreParts
from meshwright.controller.settings.settings import Settings
from meshwright.controller.state_files import StateFile
from meshwright.kubernetes.gateways.infrastructure import Home
from meshwright.kubernetes.gateways.keeper import GatewayObjects
from meshwright.kubernetes.injection.configuration.current import CurrentConfig
from meshwright.kubernetes.injection.credentials.pod_roots import Reach, at_home
from meshwright.kubernetes.injection.credentials.roots_writer import PodRoots
from meshwright.kubernetes.injection.webhook.server import Injection
from meshwright.kubernetes.status.assembly import reporter
from meshwright.kubernetes.status.reporter import Reporter

if TYPE_CHECKING:
    from meshwright.controller.sharing.shared_store import SharedStore
    from meshwright.replicas.leadership import Leadership


def reached(settings: Settings, clock: Callable[[], datetime]) -> Cluster:
    """Return the access to the cluster in the settings, with the source of objects. Raises StartupError."""
    hold = timedelta(seconds=settings.empty_answer_hold_seconds)
    return cluster(ClusterAccess.from_settings(settings), clock, StateFile(settings.state, ANSWER), hold=hold)


def join_in_cluster(
    core: CoreParts,
    result: Cluster,
    opened: AuthorityWithLedger,
    issuing: IssuerAccess,
    drivers: MeshDrivers,
    proxies: ProxyIssuing,
    shared: "SharedStore | None",
) -> ClusterParts:
    """Make the parts of a cluster and connect them with delivery. Raises CertificateError.

    `shared` is the store of several servers of one mesh, `None` for the only server.
    """
    settings, configured = core.settings, None
    leadership = None if shared is None else shared.leadership
    leads = None if leadership is None else lambda: bool(leadership.epoch)
    if settings.injection:
        configured = configured_by(settings, result, core.metrics, core.clock)
    pods = _pod_roots(core, result, opened, configured, leads or _always)
    injection = (
        None if configured is None else _injection(core, result, drivers, proxies, configured, pods, leads)
    )
    webhook = _webhook(core, result, opened, drivers, injection, leads or _always)
    reporter = _reporter(core, result, leadership)
    gateways = None
    if settings.gateways:
        gateways = GatewayObjects(
            result.api, core.view, Home(result.home, settings.revision), leads or _always
        )
        core.delivery.followers.append(gateways)
    return ClusterParts(
        result,
        webhook,
        pods,
        reporter,
        _gateway(core, result, issuing, reporter, shared),
        {"kubernetes": partial(kubernetes_proof, result.api, core.view)},
        leadership,
        gateways,
    )


def _always() -> bool:
    """Return that the only server of a mesh leads."""
    return True


def _pod_roots(
    core: CoreParts,
    result: Cluster,
    opened: AuthorityWithLedger,
    configured: CurrentConfig | None,
    leads: Callable[[], bool],
) -> PodRoots | None:
    """Return the writer of the ConfigMaps that Pods need to join, or `None` if Pods cannot join."""
    settings = core.settings
    name = settings.roots_config_map
    if not name or "kubernetes" not in settings.enrolment_proofs:
        return None
    return PodRoots(
        result.api,
        name,
        result.home,
        Reach(at_home(result.home), settings.revision),
        opened.authority.trust_bundle,
        lambda: core.delivery.gathering.sources.merged,
        core.clock,
        lambda: None if configured is None else configured.config,
        leads,
    )


def _injection(
    core: CoreParts,
    result: Cluster,
    drivers: MeshDrivers,
    proxies: ProxyIssuing,
    configured: CurrentConfig,
    pods: PodRoots | None,
    leads: Callable[[], bool] | None,
) -> Injection:
    followers = () if pods is None else (pods.noticed,)
    given = core.delivery, drivers, proxies, core.metrics, core.clock, configured, followers, leads
    return injection_of(core.settings, result, *given)


def _webhook(
    core: CoreParts,
    result: Cluster,
    opened: AuthorityWithLedger,
    drivers: MeshDrivers,
    injection: Injection | None,
    leads: Callable[[], bool],
) -> Webhook | None:
    settings = core.settings
    place = settings.webhook_reached_at
    if not settings.webhook_address or not place:
        return None
    return Webhook(
        place,
        result,
        issuer=opened.authority,
        pairs=PairFiles(settings.state, opened.seal),
        gathering=core.delivery.gathering,
        settings=mesh_settings(settings),
        further=lambda: drivers.installed,
        metrics=core.metrics,
        clock=core.clock,
        register=settings.webhook_register,
        injection=injection,
        revision=settings.revision,
        leads=leads,
    )


def _reporter(core: CoreParts, result: Cluster, leadership: "Leadership | None") -> Reporter | None:
    settings = core.settings
    if not settings.kubernetes_reports:
        return None
    leading = None
    if leadership is not None:
        from meshwright.controller.sharing.leader_reports import LeaderReports

        leading = LeaderReports(leadership)
    given = result.api, core.delivery, core.metrics, core.clock, result.home, settings.namespaces
    return reporter(*given, leading)


def _gateway(
    core: CoreParts,
    result: Cluster,
    issuing: IssuerAccess,
    reporter: Reporter | None,
    shared: "SharedStore | None",
) -> GatewayKeeper:
    state_file = StateFile(core.settings.state, GATEWAY_SECRETS)
    gateway = GatewaySecret(
        result.api,
        result.home,
        issuing.opened.issuer,
        making(core.settings),
        core.view,
        state_file if shared is None else shared.gateway_secrets,
        lambda: core.metrics.issued("gateway", issuing.opened.kind.value),
        saying(core.delivery, reporter, "gateway"),
        core.clock,
    )
    if shared is None:
        return gateway
    from meshwright.controller.gateway.leader_gateway import LeaderGateway

    return LeaderGateway(gateway, shared.leadership, shared.gateway_secrets)
