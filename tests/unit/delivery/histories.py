"""Random histories of random meshes, and their comparison with meshes computed from scratch."""

import random
from dataclasses import dataclass, replace

from catalog.lint.problems import Linter, problems
from catalog.store.view import View
from meshwright.delivery.batches import parts
from meshwright.delivery.model import Inputs
from meshwright.delivery.problems import AllProblems
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.quarantine.record import Moment
from meshwright.delivery.self_check import verify
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from meshwright.delivery.snapshots.translation import translation
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.envoy.empty_resources import empty
from tests.meshes import values as a
from tests.meshes.random_meshes import Mesh, changed, random_mesh, with_template
from xds.cache import SnapshotCache
from xds.protocol.wire import Nonce, Rejection, Response


class Replica:
    """A control plane that follows a mesh."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.view = View(mesh.settings)
        self.translate = translation(EnvoyDriver())
        self.serving = GroupSnapshots(self.view, self.translate)
        self.published = PublishedSnapshots()
        self.quarantine = Quarantine(empty, jitter=lambda: 0.0)
        self.cache = SnapshotCache()
        self.linter = Linter(self.view)
        self.problems = AllProblems()

    def wave(self) -> None:
        """Apply the mesh's changes, and serve the steps that follow."""
        edits = replace(self.view.edits_to(self.mesh.known()), settings=self.mesh.settings)
        while self.view.graph.collect(3):  # a server does this in parts, too
            pass
        for part in edits.parts(3):  # a server takes up many edits in parts, too
            self.view.apply(part)
        held = self.serving.rendering.certificates.values_unrecorded()
        gone = dict.fromkeys(held.keys() - self.mesh.certificates.keys())
        self.serving.rendering.certify({**self.mesh.certificates, **gone}, self.mesh.roots)
        for step in self.serving.steps(self.published, self.serving.touched()):
            if step is not None:
                for some in parts(step, self.published, 1):
                    self._serve(self.quarantine.after(some))
                self.published = step.after(self.published)

    def _serve(self, step: Step) -> None:
        self.cache.publish_changes(step.snapshots, step.members)

    def answer(self, dice: random.Random) -> None:
        """Let a random proxy acknowledge or reject some of its resources."""
        node = dice.choice([*sorted(self.published.members), None])
        served = None if node is None else self.cache.snapshot(node)
        if node is None or served is None or not served.types():
            return
        type_url = dice.choice(served.types())
        there = served.ordered(type_url)
        some = tuple(dice.sample(there, dice.randint(1, len(there))))
        response = Response(type_url, served.version(type_url), Nonce("1"), some)
        rejection = (
            Rejection(13, dice.choice(("no", f"no to {some[0].name}"))) if dice.random() < 0.4 else None
        )
        step = self.quarantine.answered(node, response, rejection, lambda: Moment(0.0, a.EPOCH))
        if dice.random() < 0.2:
            again = (self.quarantine.opened, self.quarantine.retry)
            other = dice.choice(again)(node) if dice.random() < 0.7 else self.quarantine.on_time(1e6)
        else:
            other = None
        for item in (step, other):
            if item is not None:
                self._serve(item)

    def look(self) -> None:
        """Look for problems in changed objects."""
        self.problems.report_lint(self.linter.looks())

    def differences(self) -> tuple[str, ...]:
        """Return the differences from the same mesh computed from scratch."""
        mesh = self.mesh
        inputs = Inputs(mesh.known(), mesh.settings, mesh.certificates, mesh.roots)
        served, exclusions = self.quarantine.served(), self.quarantine.exclusions()
        result = verify(inputs, self.translate, served, exclusions)
        anew = View(mesh.settings)
        anew.apply(mesh.known())
        if problems(anew) != self.problems.all():
            result = (*result, "problems")
        cached = ((node, self.cache.snapshot(node)) for node in served.members)
        return (
            *result,
            *(f"proxy {node} in the cache" for node, has in cached if has != served.snapshot(node)),
        )


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first step of a history (from 1) after which a replica differs from its mesh from scratch."""

    step: int
    differences: tuple[str, ...]


def mismatch(seed: int, steps: int = 6, first: int = 1) -> Mismatch | None:
    """Run a random mesh through a random history; return its first mismatch, None without one.

    Proxies acknowledge or reject their resources. Steps before `first` are not compared, because the
    comparison is most of the work.
    """
    dice = random.Random(seed)  # noqa: S311 - dice
    answers = random.Random(seed)  # noqa: S311 - other dice, so that the mesh's history is its own
    templates = random.Random(seed)  # noqa: S311 - dice for pod templates, likewise
    replica = Replica(random_mesh(dice))
    for step in range(1, steps + 1):
        replica.wave()
        for _ in range(answers.randrange(8)):
            replica.answer(answers)
        replica.look()
        if step >= first and (differences := replica.differences()):
            return Mismatch(step, differences)
        for _ in range(dice.choice((1, 1, 1, 3))):
            changed(dice, replica.mesh)
        if templates.random() < 0.5:
            with_template(templates, replica.mesh)
    return None
