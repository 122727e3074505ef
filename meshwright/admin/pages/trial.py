"""Trial of manifests on a second view of the mesh: problems, and changes of proxies. Nothing is applied."""

import difflib
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from catalog.lint.problems import problems
from catalog.relations.groups import groups
from catalog.store.edits import Edits
from catalog.store.view import MeshSettings, View
from meshwright.admin.jsonable import Document, Json
from meshwright.admin.pages.debug import problem
from meshwright.admin.pages.mesh.published_resources import versions
from meshwright.admin.pages.proxies.decoding import decode
from meshwright.delivery.snapshots.changes import Change, Kind, compare
from meshwright.delivery.snapshots.rendering import RenderInputs, resources
from meshwright.delivery.snapshots.translation import translation
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problems, ordered
from meshwright.sidecars.registry import DriverRegistry
from meshwright.sidecars.type_words import type_word
from xds.protocol.resources.snapshot import Snapshot

SECONDS: Final = 10.0
"""Maximum duration of a trial in seconds."""
PART: Final = 16
"""Number of edits that are applied in one step."""
PAUSE_SECONDS: Final = 0.0005
"""Pause in seconds after each step of some milliseconds, so that the event loop can run."""
SETS: Final = 20
LINES: Final = 400
"""Maximum numbers of shown groups of proxies (SETS), and of diff lines for each resource (LINES)."""

Snapshots = Mapping[str, Snapshot]
Read = Callable[[str], tuple[Mapping[ObjectKey, SourcedObject], Problems]]
"""Reader of manifests: returns the valid objects, and the problems of the others."""


class TooLong(Exception):
    """The trial takes longer than SECONDS."""


@dataclass(frozen=True, slots=True)
class TrialInput:
    """Input of a trial: a mesh, manifests that would be applied, and their reader."""

    settings: MeshSettings
    known: Edits
    manifests: str
    read: Read


def tried(trial_input: TrialInput) -> Document:
    """Return the changes caused by manifests; must run in a thread. Raises TooLong."""
    step = _within(time.monotonic() + SECONDS)
    objects, wrong = trial_input.read(trial_input.manifests)
    view = View(trial_input.settings)
    for part in trial_input.known.parts(PART):
        view.apply(part)
        step()
    drivers = DriverRegistry.discover().drivers.values()
    # Without secrets, because a trial must never show a key.
    rendering = RenderInputs(view, translation(*drivers, environment=os.environ, secrets=False))
    (before, _), standing = _served(rendering, step), frozenset(problems(view))
    claims = {key.claim for key in objects}  # a Pod replaces a Workload of the same name
    replaced = {key: None for key in trial_input.known.objects if key.claim in claims}
    view.apply(Edits({**replaced, **objects}))
    after, failed = _served(rendering, step)
    # A failed group keeps its last good configuration, as on a real change.
    kept = {name: before[name] for names in failed.values() for name in names if name in before}
    new = [item for item in problems(view) if item not in standing]
    fields = _document(ordered((*wrong, *new)), len(objects), before, {**after, **kept})
    return fields | {"failed": [_failure(*item) for item in sorted(failed.items())]}


def _within(until: float) -> Callable[[], None]:
    """Return a function to call between two steps, which pauses and raises TooLong after the deadline."""

    def step() -> None:
        if time.monotonic() > until:
            raise TooLong
        # sleep releases the interpreter lock to the event loop's thread.
        time.sleep(PAUSE_SECONDS)

    return step


def _served(rendering: RenderInputs, step: Callable[[], None]) -> tuple[Snapshots, Mapping[str, list[str]]]:
    """Return the snapshot of each proxy without secrets, and the proxies of failed groups by error."""
    snapshots, failed = dict[str, Snapshot](), defaultdict[str, list[str]](list)
    for group, proxies in groups(rendering.view).items():
        step()
        names = sorted(map(str, proxies))
        try:
            snapshot = Snapshot.of(resources(rendering, group).resources)
        except Exception as error:  # noqa: BLE001 - one failed group must not fail the others
            failed[f"{type(error).__name__}: {error}"] += names
        else:
            snapshots |= dict.fromkeys(names, snapshot)
    return snapshots, failed


def _failure(error: str, proxies: list[str]) -> Document:
    return {"error": error, "proxies": list[Json](sorted(proxies))}


def _document(result: Problems, objects: int, before: Snapshots, after: Snapshots) -> Document:
    compared = compare(_versions(before), _versions(after))
    changed: list[Json] = [
        {
            "proxies": list[Json](proxies.proxies),
            "resources": [_resource(change, before, after, proxies.proxies[0]) for change in proxies.changes],
        }
        for proxies in compared.changed[:SETS]
    ]
    return {
        "objects": objects,
        "problems": [problem(item) for item in result],
        "changed": changed,
        "more": len(compared.changed) - len(changed),
        "unchanged": compared.unchanged,
        "new": list[Json](compared.new),
        "gone": list[Json](compared.gone),
    }


def _versions(snapshots: Snapshots) -> dict[str, Mapping[str, Mapping[str, str]]]:
    shared = {id(snapshot): versions(snapshot) for snapshot in snapshots.values()}
    return {proxy: shared[id(snapshot)] for proxy, snapshot in snapshots.items()}  # type: ignore[misc]


def _resource(change: Change, before: Snapshots, after: Snapshots, proxy: str) -> Document:
    lines: list[str] = []
    if change.kind is Kind.CHANGED:
        old, new = (_lines(snapshots[proxy], change) for snapshots in (before, after))
        label = f"{change.type} {change.name}"
        lines = list(difflib.unified_diff(old, new, label, label, lineterm=""))
    return {
        "change": change.kind.name.lower(),
        "type": change.type,
        "name": change.name,
        "diff": list[Json](lines[:LINES]),
    }


def _lines(snapshot: Snapshot, change: Change) -> list[str]:
    """Return the lines of a resource as JSON in the form of Envoy."""
    for kind in snapshot.types():
        for resource in snapshot.ordered(kind):
            if (type_word(kind), resource.name) == (change.type, change.name):
                return json.dumps(decode(resource), indent=2, sort_keys=True).splitlines()
    return []
