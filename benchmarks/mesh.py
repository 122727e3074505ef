"""What a change of the mesh costs: from the sources' answer to the published snapshots, without clients.

    python -m benchmarks.mesh [--services 250 500 1000] [--repeat 100] [--output FILE]

CPU is the process's own (user and system), per change, the mean of all repetitions; the first change of each
kind is not counted. `values` are functions run, `pieces` what was encoded, `groups` and `proxies` what is
published anew. `lint` is the CPU of looking for problems, which a server does in a thread, at most
once a second. What the directory source does before (reading files) is not in it.
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import structlog

from benchmarks import meshes
from benchmarks.meshes import Mesh
from catalog.view import MeshSettings
from certs.authority import CertificateAuthority
from controller.following import Following, Inputs
from controller.issuing import CertificateKeeper
from controller.published import Published
from controller.translation import translation
from mesh.config import MeshConfig, SidecarSettings, TlsVersion
from mesh.endpoints import Inventory
from mesh.objects import ObjectKey, Sourced
from mesh.workload import Workload, WorkloadKey
from sidecars.envoy.driver import EnvoyDriver
from xds.cache import SnapshotCache

DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one change came to."""

    change: str
    services: int
    cpu_ms: float
    lint_ms: float
    values: float
    stopped: float
    reused: float
    pieces: float
    groups: float
    proxies: float
    longest_hold_ms: float


class Plane:
    """The control plane between sources and streams, with all its inputs in hand."""

    def __init__(self, state: Path, mesh: Mesh) -> None:
        now = datetime.now(UTC)
        settings = MeshSettings()
        authority = CertificateAuthority.open(state, settings.trust_domain, now)
        self.keeper = CertificateKeeper(authority, state, lambda _: None, lambda: 0.0)
        self.following = Following(translation(EnvoyDriver()), settings)
        self.settings = settings
        self.cache = SnapshotCache()
        self.published = Published()
        self.objects = dict(mesh.objects)
        self.workloads = dict(mesh.workloads)
        self.inventory = mesh.inventory()
        self.longest = 0.0
        self.certifying = 0.0
        self.lint = 0.0

    def change(
        self,
        objects: Iterable[tuple[ObjectKey, Sourced | None]] = (),
        workloads: Iterable[tuple[WorkloadKey, Workload | None]] = (),
    ) -> tuple[int, int]:
        """Make a wave of a change; return how many groups and proxies are published anew."""
        self.objects = _edited(self.objects, objects)
        before = self.workloads
        self.workloads = _edited(self.workloads, workloads)
        if self.workloads is not before:
            self.inventory = Inventory(tuple(self.workloads.values()))
        return self.wave()

    def wave(self) -> tuple[int, int]:
        """Follow the inputs and publish, as controller.mesh does."""
        following = self.following
        began = time.perf_counter()
        following.follow(Inputs(self.objects, (("mesh", self.inventory),), (), self.settings))
        needs = following.certificate_needs()
        self._held(began)
        began = time.process_time()
        update = self.keeper.update(needs, DAY, datetime.now(UTC))
        self.certifying = time.process_time() - began
        following.certify(update, self.keeper.certificates)
        began = time.perf_counter()
        for step in following.serving.steps(self.published, following.serving.touched()):
            self._held(began)
            began = time.perf_counter()
            if step is not None:
                published = step
        self.cache.publish_changes(published.snapshots, published.members)
        self.published = published.after(self.published)
        self._held(began)
        began = time.process_time()
        following.problems()
        self.lint = time.process_time() - began
        changed = [name for name, snapshot in published.snapshots.items() if snapshot is not None]
        members = self.cache.members
        return len(changed), sum(len(members(name)) for name in changed)

    def _held(self, began: float) -> None:
        self.longest = max(self.longest, time.perf_counter() - began)


Change = Callable[[Plane, int], tuple[int, int]]


def cost(name: str, plane: Plane, size: int, repeat: int, change: Change, warm: bool = True) -> Cost:
    """Return the mean cost of a change; it is given its number, from 0."""
    if warm:
        change(plane, 0)
    graph, serving = plane.following.view.graph, plane.following.serving
    before = (graph.computed, graph.stopped, graph.reused, serving.encoded)
    groups = proxies = 0
    lint = certifying = 0.0
    plane.longest = 0.0
    began = time.process_time()
    for number in range(1, repeat + 1):
        published = change(plane, number)
        groups, proxies = groups + published[0], proxies + published[1]
        lint, certifying = lint + plane.lint, certifying + plane.certifying
    cpu = time.process_time() - began - lint
    after = (graph.computed, graph.stopped, graph.reused, serving.encoded)
    values, stopped, reused, pieces = ((new - old) / repeat for old, new in zip(before, after, strict=True))
    return Cost(
        name,
        size,
        round(cpu / repeat * 1000, 3),
        round(lint / repeat * 1000, 3),
        values,
        stopped,
        reused,
        pieces,
        groups / repeat,
        proxies / repeat,
        round(plane.longest * 1000, 2),
    )


def endpoint(plane: Plane, number: int) -> tuple[int, int]:
    """Give one workload another address."""
    found = meshes.workload(17, 1, moved=number % 2 + 1)
    return plane.change(workloads=[(found.key, found)])


def endpoint_appears(plane: Plane, number: int) -> tuple[int, int]:
    """Let a third replica of a service come, or go."""
    found = meshes.workload(17, 2)
    return plane.change(workloads=[(found.key, found if number % 2 else None)])


def traffic_target(plane: Plane, number: int) -> tuple[int, int]:
    """Let a service admit another one's reading, or all it asks for."""
    key, value = meshes.target(16, 17, *(("read",) if number % 2 else ()))
    return plane.change([(key, meshes.sourced(key, value))])


def split_weight(plane: Plane, number: int) -> tuple[int, int]:
    """Change the weight of a split."""
    key, value = meshes.split(20, number + 2)
    return plane.change([(key, meshes.sourced(key, value))])


def service(plane: Plane, number: int) -> tuple[int, int]:
    """Let a service with two workloads and five calls appear, or disappear."""
    new = len(plane.objects) and 9990
    objects = meshes.service_objects(new, 250)
    workloads = [meshes.workload(new, replica) for replica in range(2)]
    here = number % 2 == 1
    return plane.change(
        [(key, meshes.sourced(key, value) if here else None) for key, value in objects],
        [(each.key, each if here else None) for each in workloads],
    )


def setting(plane: Plane, number: int) -> tuple[int, int]:
    """Change the mesh's TLS version: every listener and cluster changes."""
    version = (TlsVersion.V1_2, TlsVersion.V1_3)[number % 2]
    config = replace(MeshConfig(), sidecar=SidecarSettings(tls_min_version=version))
    return plane.change([(meshes.CONFIG, meshes.sourced(meshes.CONFIG, config))])


def nothing(plane: Plane, number: int) -> tuple[int, int]:
    """Read everything again: equal values, other objects in memory for one of them."""
    del number
    return plane.change([(meshes.CONFIG, replace(plane.objects[meshes.CONFIG]))])


CHANGES: Final[tuple[tuple[str, Change, bool], ...]] = (
    ("one endpoint moves", endpoint, False),
    ("an endpoint comes or goes", endpoint_appears, False),
    ("one TrafficTarget changes", traffic_target, False),
    ("a split's weight changes", split_weight, False),
    ("a service comes or goes", service, False),
    ("a mesh-wide setting changes", setting, True),
    ("nothing changed", nothing, False),
)


def measure(size: int, repeat: int) -> list[Cost]:
    """Measure every change at one size."""
    with tempfile.TemporaryDirectory() as folder:
        plane = Plane(Path(folder), meshes.mesh(size))
        from_nothing = cost("from nothing", plane, size, 1, lambda it, _: it.wave(), warm=False)
        certificates = round(plane.certifying * 1000, 3)
        found = [from_nothing, replace(from_nothing, change="  of which certificates", cpu_ms=certificates)]
        for name, change, heavy in CHANGES:
            found.append(cost(name, plane, size, 4 if heavy else repeat, change))
        return found


def main() -> None:
    """Print a table, and the growth for each doubling."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--services", type=int, nargs="+", default=[250, 500, 1000])
    parser.add_argument("--repeat", type=int, default=100)
    parser.add_argument("--output", type=Path)
    told = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    found = {size: measure(size, told.repeat) for size in told.services}
    print(_table(found))
    print(
        f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB (all sizes in turn)"
    )
    if told.output:
        told.output.write_text(
            json.dumps([asdict(each) for costs in found.values() for each in costs], indent=1)
        )


def _table(found: dict[int, list[Cost]]) -> str:
    sizes = list(found)
    title = (
        f"{'change':30}{'S':>6}{'CPU ms':>10}{'growth':>8}{'lint ms':>9}{'values':>9}{'stopped':>9}"
        f"{'reused':>8}{'pieces':>8}{'groups':>8}{'proxies':>8}{'hold ms':>9}"
    )
    lines = [title]
    for row in range(len(found[sizes[0]])):
        before = None
        for size in sizes:
            each = found[size][row]
            growth = "" if before is None else f"{each.cpu_ms / before:.2f}"
            lines.append(
                f"{each.change:30}{size:>6}{each.cpu_ms:>10.2f}{growth:>8}{each.lint_ms:>9.2f}{each.values:>9.0f}"
                f"{each.stopped:>9.0f}{each.reused:>8.0f}{each.pieces:>8.1f}{each.groups:>8.1f}"
                f"{each.proxies:>8.1f}{each.longest_hold_ms:>9.1f}"
            )
            before = each.cpu_ms
    return "\n".join(lines)


def _edited(before: dict[Any, Any], changes: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    after = None
    for key, value in changes:
        after = dict(before) if after is None else after
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    return before if after is None else after


if __name__ == "__main__":
    main()
