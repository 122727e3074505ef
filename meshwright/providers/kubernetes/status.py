"""Problems of a cluster source itself: unreadable kinds, Secrets and ConfigMaps, with the reason."""

from collections.abc import Iterator, Sequence
from typing import Final

from meshwright.kube.errors import Reason
from meshwright.mesh.kinds import CONFIG_MAP, NAMESPACE, SECRET, Kind
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Problems, Severity, ordered
from meshwright.providers.kubernetes.identity import SYSTEM
from meshwright.providers.kubernetes.named_watches import NAMED, NamedWatches
from meshwright.providers.kubernetes.resources import Plan, kind_of
from meshwright.providers.kubernetes.running_watch import Place, shown
from meshwright.providers.kubernetes.scope import Scope
from meshwright.providers.kubernetes.watches import Watches
from meshwright.specs.codes import Code
from meshwright.specs.kinds import READ
from meshwright.specs.osm.unenforced_policy import UNENFORCED

NAME: Final = "kubernetes"

_STAYS: Final = "the objects read before stay in force"
_NAMED: Final = 3
_NEEDS: Final = {
    CONFIG_MAP: "gateways need these CA certificates",
    SECRET: "listeners of gateways need these certificates",
}
_KEPT: Final = (
    "the objects read before stay in force for empty_answer_hold_seconds, in case that is a mistake"
)


def problems(watches: Watches, named: NamedWatches, unidentified: str = "") -> Problems:
    """Return the problems of the source, sorted, with one problem for all places with the same cause.

    `unidentified` is the reason why the cluster's UID is unknown.
    """
    return ordered(
        (
            *_discovery(watches),
            *_identity(unidentified),
            *_failing(watches),
            *_failing_by_name(named),
            *_hold_problems(watches),
            *_unread(watches.plan),
        )
    )


def _discovery(watches: Watches) -> Iterator[Problem]:
    if watches.undiscovered:
        expected = (
            f"{watches.undiscovered}; new and removed kinds are not detected until discovery works again"
        )
        yield _problem(Code.CLUSTER_UNREADABLE, Severity.ERROR, "discovery", expected)


def _identity(refusal: str) -> Iterator[Problem]:
    if refusal:
        expected = (
            f"{refusal}; without the UID of this Namespace, the objects saved for a restart "
            "are matched to the cluster only by URL and CA"
        )
        yield _problem(Code.CLUSTER_UNREADABLE, Severity.WARNING, f"namespaces {SYSTEM}", expected)


def _failing(watches: Watches) -> Iterator[Problem]:
    result: dict[tuple[str, object], list[Place]] = {}
    for place, watching in watches.at.items():
        if watching.figures.error:
            # A refusal is specific to its kind; an unreachable server fails all kinds for the same reason.
            one = place if watching.is_refused else watching.figures.reason
            missing = without(watches.scope, place)
            result.setdefault((missing, "" if missing else one), []).append(place)
    for (missing, _), places in result.items():
        # One problem for all places with the same cause: a server that is down would else report each kind.
        names = sorted(map(shown, places))
        error = watches.at[min(places, key=shown)].figures.error
        if len(names) > 1:
            text = (
                f"for each of these {len(names)}: {missing}"
                if missing
                else f"for all {len(names)} kinds, {_STAYS}"
            )
        else:
            text = missing or _STAYS
        severity = Severity.WARNING if missing else Severity.ERROR
        yield _problem(Code.CLUSTER_UNREADABLE, severity, _listed(names), f"{error}; {text}")


def _failing_by_name(named: NamedWatches) -> Iterator[Problem]:
    """Yield one problem for the unreadable Secrets of a namespace, because one Role permits to read all.

    ConfigMaps are treated alike.
    """
    failing: dict[tuple[Kind, str, Reason | None], dict[str, str]] = {}
    for key, reflector in sorted(named.at.items()):
        if reflector.figures.error:
            place = key.kind, key.namespace, reflector.figures.reason
            failing.setdefault(place, {})[key.name] = reflector.figures.error
    for (kind, namespace, reason), errors in failing.items():
        expected = f"{min(errors.values())}; {_NEEDS[kind]}"
        if reason is Reason.FORBIDDEN:
            expected = f"{expected}, so permit `list` and `watch` by a Role of this namespace"
        subject = f"{NAMED[kind].plural} {_listed([*errors])} in {namespace}"
        yield _problem(Code.CLUSTER_UNREADABLE, Severity.ERROR, subject, expected)


def without(scope: Scope, place: Place) -> str:
    """Return the consequence of an unreadable kind if the mesh is complete without this kind, else ""."""
    kind, namespace = kind_of(place[0]), place[1]
    if kind in UNENFORCED:
        return (
            "Meshwright does not enforce this kind, and without this permission it cannot "
            "warn the owners of such objects"
        )
    if kind == NAMESPACE and namespace is not None and not scope.selector:
        return "the namespace is in the mesh because the settings name it, but its annotations are ignored"
    return ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _hold_problems(watches: Watches) -> Iterator[Problem]:
    for place, watching in watches.at.items():
        if watching.emptied.held_since is not None:
            yield _problem(
                Code.EMPTY_HELD,
                Severity.WARNING,
                shown(place),
                f"the API server does not list objects any more; {_KEPT}",
            )
    for kind in watches.plan.missing:
        yield _problem(
            Code.EMPTY_HELD,
            Severity.WARNING,
            kind.full,
            f"the API server does not serve this kind any more; {_KEPT}",
        )


def _unread(plan: Plan) -> Iterator[Problem]:
    for kind, versions in plan.unread.items():
        expected = (
            f"the API server serves only the versions {', '.join(versions)}, and Meshwright "
            f"reads {_versions(kind)}; {_STAYS}"
        )
        yield _problem(Code.UNKNOWN_VERSION, Severity.ERROR, kind.full, expected)


def _versions(kind: Kind) -> str:
    return ", ".join(READ[kind].versions)


def _problem(code: Code, severity: Severity, subject: str, expected: str) -> Problem:
    return Problem(code=str(code), severity=severity, origin=FromSource(NAME, subject), expected=expected)
