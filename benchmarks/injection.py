"""Command `python -m benchmarks.injection`: compare our injector with istiod's on the pods of istiod's tests.

Both injectors get the same pods in the same run. The tables compare facts about the injected pods: the place
and the rights of the sidecar, redirected probes, and further changes of the pod. Nothing is measured.
"""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.in_kubernetes.api import connection, create_all
from benchmarks.in_kubernetes.objects import namespaces
from benchmarks.peers.istiod import injection, objects
from benchmarks.peers.istiod.plane import definitions, istiod
from benchmarks.processes.programs import end_with_sigterm
from benchmarks.processes.real_parts import are_had
from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig
from meshwright.kubernetes.injection.pod_injection import InjectionInputs, injected
from meshwright.kubernetes.injection.shapes import checked
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import DriverError
from meshwright.sidecars.envoy.driver import EnvoyDriver
from tools.real_parts.cluster import cluster
from tools.real_parts.parts import API_SERVER, ETCD, ISTIOD

Document = dict[str, Any]
Facts = Mapping[str, str]

NAMESPACE: Final = "team-0"
_OURS: Final = ("meshwright-sidecar", "meshwright-init")
_THEIRS: Final = ("istio-proxy", "istio-init")
_LISTS: Final = ("initContainers", "containers")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def facts(before: Document, after: Document, names: tuple[str, str]) -> Facts:
    """Return the facts of an injected pod; `names` are the names of the sidecar and the init container."""
    spec = after["spec"]
    stands = {item["name"]: (where, at) for where in _LISTS for at, item in enumerate(spec.get(where) or ())}
    containers = {item["name"]: item for where in _LISTS for item in spec.get(where) or ()}
    theirs = {item["name"]: item for where in _LISTS for item in before["spec"].get(where) or ()}
    sidecar, rules = (containers.get(item, {}) for item in names)
    where, at = stands.get(names[0], ("nowhere", 0))
    others = {name: container for name, container in containers.items() if name not in names}
    return {
        "sidecar": where,
        # The injector's own init container with the rules may precede the sidecar.
        "before the author's": str(at <= 1),
        "rules before the author's": _of(stands.get(names[1]), lambda result: str(result[1] == 0)),
        "sidecar's user": _user(sidecar),
        "init container's rights": _rights(rules),
        "sidecar's rights": _rights(sidecar),
        "seccomp profile": str(bool(sidecar.get("securityContext", {}).get("seccompProfile"))),
        "probes that ask the sidecar": _words(_rewritten(others, theirs)),
        "hooks that ask the sidecar": _words(_hooks(others, theirs)),
        "author's containers otherwise changed": _words(_otherwise(others, theirs)),
        "the pod's own security": _words(_added(before["spec"], after["spec"], "securityContext")),
        "pull secrets added": str(
            len(spec.get("imagePullSecrets") or ()) - len(before["spec"].get("imagePullSecrets") or ())
        ),
        "kinds of volumes added": _words(_volumes(before, after)),
        "labels added": str(len(_new(before, after, "labels"))),
        "requests": _words(sorted(sidecar.get("resources", {}).get("requests", {}))),
        "limits": _words(sorted(sidecar.get("resources", {}).get("limits", {}))),
    }


def _of(result: Any, field: Any) -> str:  # noqa: ANN401 - whatever was found
    return "none" if result is None else str(field(result))


def _words(result: Any) -> str:  # noqa: ANN401 - any iterable of words
    return ", ".join(sorted(map(str, result))) or "none"


def _user(container: Document) -> str:
    security = container.get("securityContext") or {}
    return "root" if security.get("runAsUser") == 0 else "its own" if "runAsUser" in security else "any"


def _rights(container: Document) -> str:
    return _words((container.get("securityContext") or {}).get("capabilities", {}).get("add") or ())


def _rewritten(others: Document, theirs: Document) -> Iterator[str]:
    for name, item in others.items():
        for kind in _PROBES:
            if item.get(kind) != theirs.get(name, {}).get(kind):
                yield f"{name}.{kind}"


def _hooks(others: Document, theirs: Document) -> Iterator[str]:
    for name, item in others.items():
        for kind in ("postStart", "preStop"):
            now, was = ((of.get("lifecycle") or {}).get(kind) for of in (item, theirs.get(name, {})))
            if now != was:
                yield f"{name}.{kind}"


def _otherwise(others: Document, theirs: Document) -> Iterator[str]:
    for name, item in others.items():
        was = theirs.get(name, {})
        for key in sorted(item.keys() | was.keys()):
            # Probes and hooks have rows of their own.
            if key not in (*_PROBES, "lifecycle") and item.get(key) != was.get(key):
                yield key


def _added(before: Document, after: Document, name: str) -> list[str]:
    was, now = (item.get(name) or {} for item in (before, after))
    return [f"{key}={now[key]}" for key in now if now.get(key) != was.get(key)]


def _volumes(before: Document, after: Document) -> set[str]:
    known = {volume["name"] for volume in before["spec"].get("volumes") or ()}
    new = [volume for volume in after["spec"].get("volumes") or () if volume["name"] not in known]
    return {key for item in new for key in item if key != "name"}


def _new(before: Document, after: Document, words: str) -> set[str]:
    return set(after["metadata"].get(words) or ()) - set(before["metadata"].get(words) or ())


@dataclass(frozen=True, slots=True)
class InjectionComparison:
    """Result for one pod: decision of our injector and of istiod's, and facts if both injected."""

    name: str
    decided: tuple[str, str]
    ours: Facts
    theirs: Facts


def compared(name: str, pod: Document, address: str) -> InjectionComparison:
    """Submit a pod to our injector and to istiod's, and return the comparison."""
    answer = injection.review_pod(address, pod, NAMESPACE)
    was = {**pod, "metadata": {"name": "asked", **pod["metadata"], "namespace": NAMESPACE}}
    is_theirs = _has(answer.pod, _THEIRS[0]) and answer.pod["spec"] != pod["spec"]
    text = "refused" if answer.refused else "injected" if is_theirs else "left"
    theirs = facts(was, answer.pod, _THEIRS) if text == "injected" else {}
    known = InjectionInputs(InjectionConfig(image="proxy:1"), {"envoy": EnvoyDriver()})
    made: Any = None
    try:
        made = injected(known, NamespaceObject(Namespace(NAMESPACE)), checked(was)).pod
        ours = "left" if made is None else "injected"
    except DriverError as error:
        ours = f"refused: {str(error)[:60]}"
    return InjectionComparison(name, (ours, text), {} if made is None else facts(was, made, _OURS), theirs)


def _has(pod: Document, name: str) -> bool:
    return any(item.get("name") == name for where in _LISTS for item in pod["spec"].get(where) or ())


def tables(injection_comparisons: Sequence[InjectionComparison]) -> Iterator[Table]:
    """Yield a table of the decisions, and a table with the number of equal and different facts."""
    decided = Table("ours", "istiod's", "pods", "such as", title="decisions")
    for both, count in sorted(Counter(comparison.decided for comparison in injection_comparisons).items()):
        names = [comparison.name for comparison in injection_comparisons if comparison.decided == both]
        decided.add_row(*both, str(count), ", ".join(names[:3]))
    yield decided
    table = Table("pods injected by both", "ours", "istiod's", "pods", "such as", title="fact by fact")
    injected_twice = [
        comparison for comparison in injection_comparisons if comparison.ours and comparison.theirs
    ]
    for fact in injected_twice[0].ours if injected_twice else ():
        pairs = Counter((comparison.ours[fact], comparison.theirs[fact]) for comparison in injected_twice)
        for (ours, theirs), count in sorted(pairs.items(), key=lambda pair: -pair[1]):
            if ours != theirs:
                such = next(
                    comparison.name
                    for comparison in injected_twice
                    if (comparison.ours[fact], comparison.theirs[fact]) == (ours, theirs)
                )
                table.add_row(fact, ours, theirs, str(count), such)
        same = sum(count for (ours, theirs), count in pairs.items() if ours == theirs)
        table.add_row(fact, "[green]the same[/green]", "", str(same), "")
    yield table


def main() -> None:
    """Build missing parts, compare the injectors, and print the tables."""
    end_with_sigterm()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.injection", description=__doc__)
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    arguments = parser.parse_args()
    console = Console(width=200)
    if not are_had((ETCD, API_SERVER, ISTIOD), console.log):
        return
    with tempfile.TemporaryDirectory(prefix="injection-") as name, cluster(Path(name) / "cluster") as held:
        with connection(held) as api:
            api.define(definitions())
            api.until_served(objects.SIDECAR, objects.VIRTUAL_SERVICE, objects.POLICY)
        create_all(held, namespaces(objects.SYSTEM))
        create_all(held, [objects.settings(), injection.configuration()])
        with istiod(held, Path(name) / "log") as (plane, _):
            injection_comparisons = [compared(who, pod, plane.http) for who, pod in injection.pods()]
    for table in tables(injection_comparisons):
        console.print(table)
    if arguments.output:
        rows = [
            {
                "pod": comparison.name,
                "decided": comparison.decided,
                "ours": comparison.ours,
                "theirs": comparison.theirs,
            }
            for comparison in injection_comparisons
        ]
        arguments.output.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
