"""Problems between several objects: a function for each kind returns the problems of one object."""

import itertools
from collections.abc import Callable, Hashable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from catalog.lint import servers
from catalog.lint.codes import Code
from catalog.lint.gateway import backend_tls, classes, gateways, routes
from catalog.lint.gateway import listener_sets as sets
from catalog.lint.lint import DriverChecks, Lint, NoDriverChecks, fine
from catalog.lint.osm import egress, ingress, limits, retries, roots, telemetry, tls_keys
from catalog.lint.own import authorization, client_traffic, mutual_tls, routing, upstreams
from catalog.lint.services import address_families as families
from catalog.lint.services import scope, services
from catalog.lint.smi import effect, matches, reach, splits, targets
from catalog.lint.smi import open_ports as opening
from catalog.lint.wording import Place, problem_of
from catalog.relations.conflicts import conflicts, shared
from catalog.relations.groups import driver_of
from catalog.store.gateway import backend_tls_policies, gateway_classes, gateway_routes, listener_sets
from catalog.store.gateway import gateways as all_gateways
from catalog.store.inventory import claimant_of
from catalog.store.objects import workload_object
from catalog.store.osm import (
    egresses,
    extension_services,
    ingress_backends,
    root_certificates,
    telemetries,
)
from catalog.store.osm import retries as all_retries
from catalog.store.osm import settings as all_settings
from catalog.store.own_policies import (
    client_traffic_policies,
    external_authorizations,
    route_policies,
    upstream_policies,
)
from catalog.store.own_policies import mutual_tls as all_mutual_tls
from catalog.store.smi import http_route_groups
from catalog.store.smi import splits as all_splits
from catalog.store.smi import targets as all_targets
from catalog.store.view import View, config_in_force, configs
from meshwright.engine.derived import ObservedTable, ObservedValues, derived
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import FromSource
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem, Problems, Severity, ordered
from meshwright.mesh.problems.tally import bounded
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import Workload, WorkloadKey

_HERE: Final = "the settings of the mesh"

_MINUTE: Final = timedelta(minutes=1)

_LEFT_OUT: Final = ", so this listener is left out."
_SHARED: Final = (
    " in another namespace. Both sidecars listen, and on one machine the kernel shares the connections "
    "between them."
)


def problems(view: View, now: datetime | None = None) -> Problems:
    """Return all problems of a view at a time, sorted and without duplicates.

    Without a time the validity of certificates is not checked.
    """
    return ordered(problem for _, look in Linter(view, now=now).looks() for problem in look)


Looked = tuple[Hashable, Problems]
"""A checked object, by a unique key, with its current problems."""


class Linter:
    """Incremental lint of a view: checks every object first, and after a change only the objects concerned.

    `further` returns the checks of sidecar drivers; `renew` calls `further` again. `now` is the time for
    certificates, until `at` gives another one.
    """

    def __init__(
        self,
        view: View,
        further: Callable[[], DriverChecks] = NoDriverChecks,
        now: datetime | None = None,
    ) -> None:
        self._further = further
        self._lint = lint = Lint(view, further(), now)
        self._due: dict[Hashable, dict[Any, None]] = {}
        mesh: ObservedValues[str, Problems] = ObservedValues(of_mesh, lint)
        mesh.add(_HERE)
        self._kinds: tuple[ObservedValues[Any, Problems], ...] = (
            ObservedTable(of_target, lint, all_targets(view)),
            ObservedTable(of_group, lint, http_route_groups(view)),
            ObservedTable(of_split, lint, all_splits(view)),
            ObservedTable(of_retry, lint, all_retries(view)),
            ObservedTable(of_setting, lint, all_settings(view)),
            ObservedTable(of_route_policy, lint, route_policies(view)),
            ObservedTable(of_upstream_policy, lint, upstream_policies(view)),
            ObservedTable(of_mutual_tls, lint, all_mutual_tls(view)),
            ObservedTable(of_authorization, lint, external_authorizations(view)),
            ObservedTable(of_client_traffic_policy, lint, client_traffic_policies(view)),
            ObservedTable(of_egress, lint, egresses(view)),
            ObservedTable(of_telemetry, lint, telemetries(view)),
            ObservedTable(of_extension_service, lint, extension_services(view)),
            ObservedTable(of_ingress, lint, ingress_backends(view)),
            ObservedTable(of_service, lint, view.services),
            ObservedTable(of_workload, lint, view.workloads),
            ObservedTable(of_config, lint, configs(view)),
            ObservedTable(of_root, lint, root_certificates(view)),
            ObservedTable(of_namespace, lint, view.namespaces),
            ObservedTable(of_gateway_route, lint, gateway_routes(view)),
            ObservedTable(of_gateway, lint, all_gateways(view)),
            ObservedTable(of_listener_set, lint, listener_sets(view)),
            ObservedTable(of_backend_tls_policy, lint, backend_tls_policies(view)),
            ObservedTable(of_gateway_class, lint, gateway_classes(view)),
            mesh,
        )

    def renew(self) -> None:
        """Replace the checks of sidecar drivers by the current ones."""
        self._lint.renew(self._further())

    def at(self, now: datetime) -> None:
        """Set the time, if the one in force is a minute away; Gateways with certificates are due then."""
        before = self._lint.now
        if before is None or abs(now - before) >= _MINUTE:
            self._lint.at(now)

    def looks(self) -> Iterator[Looked]:
        """Yield each changed object with its problems, and each deleted object with an empty tuple.

        A caller may stop early. The next call then begins with the last yielded object, and goes on with the
        remaining due objects.
        """
        for kind, pins in enumerate(self._kinds):
            due = self._due.setdefault(kind, {})
            due.update(dict.fromkeys(pins.take_changed()))
            for key in tuple(due):
                yield (kind, key), _outcome(pins, key) if key in pins else ()
                # Only now, because a caller that stops at the yield has to see this object again.
                due.pop(key, None)


def _outcome(pins: ObservedValues[Any, Problems], key: object) -> Problems:
    """Return the problems of an object: at most 200 of a code, and one with the number of the others.

    An exception of a check becomes a problem with the code `not-checked`.
    """
    try:
        # A single object with thousands of faults must not fill the table of problems.
        return bounded(pins.value(key), "with this object")
    except Exception as error:  # noqa: BLE001 - a fault of lint must not stop the mesh
        return (
            Problem(
                code="not-checked",
                severity=Severity.ERROR,
                origin=FromSource("catalog"),
                expected=f"Lint failed at {key}, so its problems are not known. The cause: {error}",
            ),
        )


@derived
def of_mesh(lint: Lint, _: str) -> Problems:
    """Return the problems of the mesh's settings found by the checks of sidecar drivers."""
    return lint.further.of_mesh(lint.view)


@derived
def of_target(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of a TrafficTarget."""
    target = all_targets(lint.view)[key]
    return (
        *targets.problems(lint.view, target),
        *reach.problems(lint, target),
        *effect.problems(lint, target),
        *opening.problems(lint, target),
        *matches.of_target(lint.view, target),
    )


@derived
def of_group(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of an HTTPRouteGroup."""
    return tuple(matches.of_group(lint.view, http_route_groups(lint.view)[key]))


@derived
def of_split(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of a TrafficSplit."""
    return tuple(splits.problems(lint, all_splits(lint.view)[key]))


@derived
def of_telemetry(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of a Telemetry."""
    return tuple(telemetry.problems(lint, telemetries(lint.view)[key]))


@derived
def of_extension_service(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of an ExtensionService."""
    return tuple(telemetry.of_service(lint.view, extension_services(lint.view)[key]))


@derived
def of_retry(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of a Retry."""
    return tuple(retries.problems(lint, all_retries(lint.view)[key]))


@derived
def of_setting(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of an UpstreamTrafficSetting."""
    return tuple(limits.problems(lint.view, all_settings(lint.view)[key]))


@derived
def of_route_policy(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of a RoutePolicy."""
    return tuple(routing.problems(lint.view, route_policies(lint.view)[key]))


@derived
def of_upstream_policy(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of an UpstreamPolicy."""
    return tuple(upstreams.problems(lint.view, upstream_policies(lint.view)[key]))


@derived
def of_mutual_tls(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of a MutualTLS."""
    return tuple(mutual_tls.problems(lint, key))


@derived
def of_authorization(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of an ExternalAuthorization."""
    return tuple(authorization.problems(lint, key))


@derived
def of_client_traffic_policy(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of a ClientTrafficPolicy."""
    return tuple(client_traffic.problems(lint.view, client_traffic_policies(lint.view)[key]))


@derived
def of_egress(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of an Egress."""
    return tuple(egress.problems(lint.view, egresses(lint.view)[key]))


@derived
def of_ingress(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of an IngressBackend."""
    return tuple(ingress.problems(lint.view, ingress_backends(lint.view)[key]))


@derived
def of_service(lint: Lint, key: ServiceKey) -> Problems:
    """Return the problems of a Service."""
    return tuple(services.of_service(lint, lint.view.services[key]))


@derived
def of_workload(lint: Lint, key: WorkloadKey) -> Problems:
    """Return the problems of a workload."""
    workload = lint.view.workloads[key]
    named = workload_object(lint.view, key)
    return (
        *services.of_workload(lint.view, workload),
        *families.of_workload(lint.view, workload),
        *scope.problems(lint, named, workload.scope),
        *gateways.of_workload(Place(lint.view, named), workload),
        *_claims(lint.view, key),
        *_of_driver(lint, workload),
    )


@derived
def of_namespace(lint: Lint, name: Namespace) -> Problems:
    """Return the problems of a Namespace."""
    key = ObjectKey.of_namespace(name)
    return tuple(scope.problems(lint, key, lint.view.namespaces[name].scope))


@derived
def of_config(lint: Lint, key: ObjectKey) -> Problems:
    """Return the problems of a MeshConfig."""
    first = config_in_force(lint.view)
    if first == key:
        config = lint.view.config
        result = (servers.problems(lint.view, key, config), tls_keys.problems(lint.view, key, config))
        return tuple(itertools.chain.from_iterable(result))
    wanted = (
        f"{first} is in force, and this MeshConfig is ignored, because only one can be in force. Delete one "
        "of the two."
    )
    return (
        problem_of(lint.view, key, Code.SEVERAL_CONFIGS, Severity.WARNING, "metadata.name", key.name, wanted),
    )


@derived
def of_root(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of a MeshRootCertificate."""
    return tuple(roots.problems(lint.view, root_certificates(lint.view)[key]))


@derived
def of_gateway_route(lint: Lint, key: ObjectKey) -> Problems:
    """Return the problems of a route of the Gateway API."""
    return tuple(routes.problems(lint, key, gateway_routes(lint.view)[key]))


@derived
def of_gateway(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of a Gateway."""
    return tuple(gateways.of_gateway(lint, all_gateways(lint.view)[key]))


@derived
def of_listener_set(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of a ListenerSet."""
    return tuple(sets.of_set(lint, listener_sets(lint.view)[key]))


@derived
def of_backend_tls_policy(lint: Lint, key: PolicyKey) -> Problems:
    """Return the problems of a BackendTLSPolicy."""
    return tuple(backend_tls.of_policy(lint, backend_tls_policies(lint.view)[key]))


@derived
def of_gateway_class(lint: Lint, name: str) -> Problems:
    """Return the problems of a GatewayClass."""
    return tuple(classes.of_class(lint.view, gateway_classes(lint.view)[name]))


def _of_driver(lint: Lint, workload: Workload) -> Problems:
    """Return the problems of a workload found by its sidecar driver."""
    if workload.uuid is None or driver_of(lint.view, workload) in fine(lint).value():
        return ()
    return lint.further.of_workload(lint.view, workload.key)


def _claims(view: View, own: WorkloadKey) -> Iterator[Problem]:
    """Yield a problem for each listener or UUID of a workload that another workload already has."""
    key = workload_object(view, own)
    left_out = [(conflict, _LEFT_OUT) for conflict in conflicts(view, own)]
    for conflict, then in (*left_out, *((conflict, _SHARED) for conflict in shared(view, own))):
        yield problem_of(
            view,
            key,
            Code.LISTENER_CONFLICT,
            Severity.ERROR,
            "spec.upstreams" if conflict.refused.index >= 0 else "spec.ports",
            str(conflict.refused),
            f"Another listener ({conflict.holder}) has the same address and port{then} "
            "Choose another address or port.",
        )
    claimed = view.workloads[own].sidecar
    if claimed is not None and (holder := claimant_of(view, claimed)) is not None and holder.key != own:
        wanted = (
            f"Workload {holder.key} has this UUID already, and each sidecar needs its own. "
            "Choose another UUID."
        )
        yield problem_of(view, key, Code.UUID_TWICE, Severity.ERROR, "spec.uuid", str(claimed.uuid), wanted)
