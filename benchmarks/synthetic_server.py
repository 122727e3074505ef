"""Command `python -m benchmarks.synthetic_server`: serve synthetic ClusterLoadAssignments.

All nodes get the same snapshot, and every client with a certificate signed by `ca.pem` can have any number of
streams. A control port on loopback makes changes: `GET /bump` changes the endpoints of the first assignment
and answers when the new snapshot is set, `GET /again` publishes an equal snapshot of new objects, and `GET
/stats` returns the cost. The server uses only the public interface of `xds`.
"""

import argparse
import asyncio
import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.synthetic.frame import control, flags, serve_until_signal
from benchmarks.synthetic.resources import around, assignment
from meshwright.controller.process.memory import tended, tending
from meshwright.controller.process.polling import EXPERIMENTS, READ_WHERE_IT_POLLS

os.environ.setdefault(EXPERIMENTS, READ_WHERE_IT_POLLS)  # before gRPC is imported, as in `serve`

from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.hooks import AnyNode
from xds.limits import Limits
from xds.protocol.resources.resource import Resource
from xds.protocol.resources.snapshot import Snapshot
from xds.server.ads import AdsServer
from xds.server.tls import TlsIdentity

_NODE: Final = NodeKey("n")
_GROUP: Final = GroupKey("g")
_LIMITS: Final = Limits(streams_per_second=None).without_budgets()
"""Limits for many clients with the same node, all of which may connect at once."""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = flags("benchmarks.synthetic_server", __doc__)
    parser.add_argument("--types", choices=("eds", "mesh"), default="eds", help="mesh: with CDS, LDS and RDS")
    parser.add_argument("--default-admission", action="store_true", help="keep the limit of new streams/s")
    return parser.parse_args(argv)


class SyntheticResources:
    """The served synthetic resources, and changes of them."""

    def __init__(self, services: int, endpoints: int, *, mesh: bool) -> None:
        self.cache = SnapshotCache()
        self._services = services
        self._endpoints = endpoints
        self._mesh = mesh
        self._revision = 0
        self._resources: list[Resource] = []
        self.again()

    def again(self) -> None:
        """Create all resources anew with equal contents, and publish the snapshot."""
        self._resources = [assignment(0, self._endpoints, self._revision)]
        self._resources += [assignment(i, self._endpoints, 0) for i in range(1, self._services)]
        self._resources += around(range(self._services)) if self._mesh else ()
        self._publish()

    def bump(self) -> None:
        """Create the first assignment anew with other endpoints, and publish.

        The other objects stay the same.
        """
        self._revision += 1
        self._resources[0] = assignment(0, self._endpoints, self._revision)
        self._publish()

    def _publish(self) -> None:
        self.cache.publish({_GROUP: Snapshot.of(self._resources)}, {_NODE: _GROUP})


async def serve(options: argparse.Namespace) -> None:
    """Serve synthetic resources until SIGTERM or SIGINT, with the garbage collection of the real server."""
    directory: Path = options.tls_dir
    identity = TlsIdentity(*((directory / name).read_bytes() for name in ("s.pem", "s.key", "ca.pem")))
    synthetic = SyntheticResources(options.services, options.endpoints, mesh=options.types == "mesh")
    limits = Limits().without_budgets() if options.default_admission else _LIMITS
    server = AdsServer(synthetic.cache, AnyNode(_NODE), lambda: identity, limits=limits)

    def stats() -> dict[str, object]:
        encoded = server.responses_encoded
        return {"streams": len(server.statuses()), "responses_encoded": encoded, "rss_kib": _resident()}

    await server.start(f"127.0.0.1:{options.port}")
    with tended():
        # As in the real server, so that collections cost the same here.
        gc.freeze()
        collecting = asyncio.create_task(tending(lambda: 0, lambda: True), name="memory")
        await serve_until_signal(options, control({"bump": synthetic.bump, "again": synthetic.again}, stats))
        collecting.cancel()
    await server.stop(0.5)


def main() -> None:
    """Run the server with synthetic resources."""
    asyncio.run(serve(arguments()))


def _resident() -> int:
    """Return the resident memory of this process in KiB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


if __name__ == "__main__":
    main()
