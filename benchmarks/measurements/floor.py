"""Memory and CPU time of a bare grpc.aio server with the same number of streams and equal responses."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from structlog.testing import capture_logs

from benchmarks.meshes import generator as meshes
from benchmarks.processes.clients import sidecars
from benchmarks.processes.credentials import issue
from benchmarks.processes.programs import Checkout, build, serving
from benchmarks.processes.quiet import settled
from benchmarks.processes.usage import memory
from catalog.relations.groups import group_of
from catalog.relations.identities import dns_names
from catalog.store.view import MeshSettings, View
from certs.authority_files.store import AuthorityFiles
from certs.manager import CertificateManager
from certs.roots.authority import ChangingAuthority
from certs.state.pair_files import PairFiles
from meshwright.delivery.snapshots.rendering import RenderInputs, resources
from meshwright.delivery.snapshots.translation import translation
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.driver import EnvoyDriver
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Nonce, Response, delta_response_body, with_nonce

BARE_MODULE: Final = "benchmarks.peers.bare_mesh"
SERVICE: Final = 1
"""Service whose configuration all streams get; it has no split, like nine of ten services."""


@dataclass(frozen=True, slots=True)
class Floor:
    """Results of the bare server with all streams: resident memory (MiB), and CPU seconds for connecting."""

    streams: int
    memory: float
    cpu: float


def floor(folder: Path, services: int, streams: int) -> Floor:
    """Connect sidecars to a bare server, which sends each the configuration for a mesh of this size."""
    tls, answers = folder / "floor", folder / "answers"
    tls.mkdir()
    issue(tls)
    answers.mkdir()
    for number, message in enumerate(messages(services, tls / "state")):
        (answers / f"{number}").write_bytes(message)
    command = (*Checkout().module(BARE_MODULE), "--answers", str(answers))
    program = build("loadgen/meshclients")
    with (
        serving(command, tls) as server,
        # All streams share one certificate, because the handler does not look at names.
        sidecars(program, f"127.0.0.1:{server.port}", tls, ["c"] * streams) as clients,
    ):
        before = server.cpu_seconds()
        clients.connect(streams)
        settled(server.cpu_seconds)
        spent = round(server.cpu_seconds() - before, 3)
        return Floor(streams, memory(server.process.pid).resident, spent)


def messages(services: int, state: Path) -> list[bytes]:
    """Return the first responses to a sidecar, each as a line with the type and the encoded response."""
    view, now = View.build(dict(meshes.mesh(services).objects), MeshSettings()), datetime.now(UTC)
    group = group_of(view, view.workloads[meshes.workload(SERVICE, 0).key])
    authority = ChangingAuthority(AuthorityFiles(state), TrustDomain("cluster.local"), now)
    manager = CertificateManager(authority, PairFiles(state), timedelta(days=1), lambda: 0.0)
    rendering = RenderInputs(view, translation(EnvoyDriver()))
    # The manager logs the new certificate, which is of no interest here.
    with capture_logs():
        certificate = manager.ensure(group.identity, dns_names(view, group.identity), now)
    rendering.certify({group.identity: certificate}, authority.trust_bundle())
    snapshot = Snapshot.of(resources(rendering, group).resources)
    result = []
    for type_url in snapshot.types():
        response = Response(type_url, snapshot.version(type_url), Nonce("1"), snapshot.ordered(type_url))
        body = with_nonce(delta_response_body(response, "bare"), response.nonce)
        result.append(b"\n".join((type_url.encode(), body)))
    return result
