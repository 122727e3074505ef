"""What is wrong between objects: each function looks at one object and says what is not in force, and why."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from catalog.lint import effect, matches, opening, reach, scope, services, splits, targets
from catalog.lint.codes import Code
from catalog.lint.lint import Lint
from catalog.lint.told import say
from catalog.relations.conflicts import conflicts
from catalog.store.inventory import holder_of
from catalog.store.objects import workload_object
from catalog.store.smi import http_route_groups
from catalog.store.smi import splits as all_splits
from catalog.store.smi import targets as all_targets
from catalog.store.view import View, config_order, configs
from engine.derived import Observed, ObservedAll, derived
from engine.graph import Graph
from mesh.names import Namespace
from mesh.objects import ObjectKey
from mesh.origins import FromSource
from mesh.policy import PolicyKey
from mesh.problems import Problem, Problems, Severity, ordered
from mesh.service import ServiceKey
from mesh.workload import WorkloadKey

_REST: Final = "rest"


def nothing(_: View) -> Problems:
    """Find no further problem."""
    return ()


def problems(view: View) -> Problems:
    """Return all problems of a view, sorted, each once."""
    return ordered(each for _, said in Linter(view).looks() for each in said)


Looked = tuple[Hashable, Problems]
"""What was looked at, by a key that tells it from all others, and what is wrong with it now."""


class Linter:
    """Looks for the problems of a view: first at everything, after a change at what it concerns.

    `further` finds problems that the catalog knows nothing of. It is asked again when what it read of the
    view has changed; whatever else it looks at must stay the same until `renew`.
    """

    def __init__(self, view: View, further: Callable[[View], Problems] = nothing) -> None:
        lint = Lint(view)
        self._view, self._further = view, further
        self._rest: Observed[str, Problems] = Observed(of_rest, _Rest(view, further))
        self._rest.add(_REST)
        self._kinds: tuple[Observed[Any, Problems], ...] = (
            ObservedAll(of_target, lint, all_targets(view)),
            ObservedAll(of_group, lint, http_route_groups(view)),
            ObservedAll(of_split, lint, all_splits(view)),
            ObservedAll(of_service, lint, view.services),
            ObservedAll(of_workload, lint, view.workloads),
            ObservedAll(of_config, lint, configs(view)),
            ObservedAll(of_namespace, lint, view.namespaces),
        )

    def renew(self) -> None:
        """Ask `further` again."""
        self._rest.discard(_REST)
        self._rest = Observed(of_rest, _Rest(self._view, self._further))
        self._rest.add(_REST)

    def looks(self) -> Iterator[Looked]:
        """Come up to date, object by object: nothing is wrong with one that has gone."""
        for kind, pins in enumerate((*self._kinds, self._rest)):
            for key in pins.take_changed():
                yield (kind, key), _outcome(pins, key) if key in pins else ()


def _outcome(pins: Observed[Any, Problems], key: object) -> Problems:
    """Return what is wrong with an object; that this cannot be said is a problem like others."""
    try:
        return pins.value(key)
    except Exception as error:  # noqa: BLE001 - whatever it is, what is served stands
        return (
            Problem(
                code="not-checked", severity=Severity.ERROR, origin=FromSource("catalog"), expected=f"{error}"
            ),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Rest:
    """A view, and who finds problems in it that the catalog knows nothing of."""

    view: View
    further: Callable[[View], Problems]

    @property
    def graph(self) -> Graph:
        return self.view.graph


@derived
def of_rest(rest: _Rest, _: str) -> Problems:
    """Return the problems that the catalog knows nothing of."""
    return rest.further(rest.view)


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
        *scope.problems(lint, named, workload.scope),
        *_claims(lint.view, key),
    )


@derived
def of_namespace(lint: Lint, name: Namespace) -> Problems:
    """Return the problems of a Namespace."""
    key = ObjectKey.of_namespace(name)
    return tuple(scope.problems(lint, key, lint.view.namespaces[name].scope))


@derived
def of_config(lint: Lint, key: ObjectKey) -> Problems:
    """Return the problems of a MeshConfig."""
    first = min(configs(lint.view), key=config_order)
    if first == key:
        return ()
    wanted = f"{first} counts and this one does not; keep one of them"
    return (say(lint.view, key, Code.SEVERAL_CONFIGS, Severity.WARNING, "metadata.name", key.name, wanted),)


def _claims(view: View, own: WorkloadKey) -> Iterator[Problem]:
    """Yield what a workload claims and another one has: listeners, and its UUID."""
    key = workload_object(view, own)
    for each in conflicts(view, own):
        yield say(
            view,
            key,
            Code.LISTENER_CONFLICT,
            Severity.ERROR,
            "spec.upstreams" if each.refused.index >= 0 else "spec.ports",
            str(each.refused),
            f"the address and port are held by {each.holder}; this listener is left out, choose another",
        )
    uuid = view.workloads[own].uuid
    if uuid is not None and (holder := holder_of(view, uuid)) is not None and holder.key != own:
        wanted = f"workload {holder.key} has this UUID; each sidecar needs one of its own"
        yield say(view, key, Code.UUID_TWICE, Severity.ERROR, "spec.uuid", str(uuid), wanted)
