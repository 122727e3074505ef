"""Calls from and to a Pod without sidecar, in each mode of the mesh.

Mutual TLS is required in every mode, as in Open Service Mesh, so a client without a certificate of the mesh
is always refused. Destinations outside the mesh are reachable only if the MeshConfig allows egress.
"""

from collections.abc import Mapping
from typing import Final

from demo.display.verdicts import Verdict
from demo.kubernetes import purchases as asking
from demo.kubernetes.plane import NAMESPACE
from demo.kubernetes.pods import Program, ProgramSelector
from demo.kubernetes.store import PodStore, scene
from demo.matrix import PHASES
from demo.topology import BOOKBUYER, BOOKSTORE, STORE_V1

_OUTSIDER: Final = ProgramSelector("outside", "app=outsider", "bookstore")
_HOST: Final = "outsider.outside"
_PERMISSIVE: Final = PHASES[0].manifests
_STRICT: Final = PHASES[2].manifests


async def outsider(store: PodStore) -> list[Verdict]:
    """Check calls from and to a Pod without sidecar: permissive, strict, and strict with egress."""
    await store.deploy(scene("outsider.yaml"))
    program = Program(store.kubectl, _OUTSIDER)
    try:
        return [
            *await _in_mode(store, program, "permissive", _PERMISSIVE, reached=False),
            *await _in_mode(store, program, "strict", _STRICT, reached=False),
            *await _with_egress(store, program),
        ]
    finally:
        await program.close()
        await store.remove(scene("outsider.yaml"))


async def _in_mode(
    store: PodStore, program: Program, title: str, mode: Mapping[str, str], *, reached: bool
) -> list[Verdict]:
    await store.change(mode)
    buyer, seller = store.kubectl_programs[BOOKBUYER.name], store.kubectl_programs[STORE_V1.name]
    host, port = store.target(BOOKBUYER, BOOKSTORE)
    cases = (
        (buyer, seller, host, "Pod with sidecar calls Pod with sidecar", True),
        (program, seller, host, "Pod without sidecar calls Pod with sidecar", False),
        (buyer, program, _HOST, "Pod with sidecar calls Pod without sidecar", reached),
        (program, program, _HOST, "Pod without sidecar calls Pod without sidecar", True),
    )
    return [
        await asking.judge(
            client, server, at, port, phase="outsider", subject=f"{title}: {what}", served=served
        )
        for client, server, at, what, served in cases
    ]


async def _with_egress(store: PodStore, program: Program) -> list[Verdict]:
    await _egress(store, allowed=True)
    try:
        return await _in_mode(store, program, "strict with egress", _STRICT, reached=True)
    finally:
        await _egress(store, allowed=False)


async def _egress(store: PodStore, *, allowed: bool) -> None:
    patch = f'{{"spec": {{"traffic": {{"enableEgress": {str(allowed).lower()}}}}}}}'
    await store.kubectl(
        "patch", "meshconfig", "osm-mesh-config", "-n", NAMESPACE, "--type=merge", f"-p={patch}"
    )
