"""Command `python -m benchmarks.peers.bare_mesh`: minimum cost of a sidecar's stream with grpc.aio.

The handler is empty: the first request of each type on a stream gets prepared bytes, the same for all
streams, and other requests are read and dropped. mTLS, heap settings, reader thread and wake-ups of the event
loop are those of our server.
"""

from meshwright.cli.process.structlog_alone import import_structlog
from meshwright.controller.process.polling import read_where_it_polls

import_structlog()
read_where_it_polls()  # gRPC reads the setting at its import

import asyncio
from collections.abc import Mapping
from pathlib import Path

import grpc
import grpc.aio

from benchmarks.peers.bare_grpc import credentials
from benchmarks.synthetic.frame import control, flags, serve_until_signal
from meshwright.controller.process.memory import returning
from xds.discovery import AGGREGATED
from xds.limits import Limits
from xds.server.listener import options
from xds.server.streams.wakeups import once_for_all


class BareMeshServer:
    """Server with prepared responses by type; a stream gets the response to its first request of a type."""

    def __init__(self, answers: Mapping[bytes, bytes]) -> None:
        self.streams = 0
        self._answers = answers

    async def serve(self, requests: object, context: grpc.aio.ServicerContext) -> None:
        """Answer the requests of one xDS stream."""
        del requests
        waiting = dict(self._answers)
        self.streams += 1
        try:
            while isinstance(message := await context.read(), bytes):
                for type_url in [item for item in waiting if item in message]:
                    await context.write(waiting.pop(type_url))
        finally:
            self.streams -= 1


async def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = flags("benchmarks.peers.bare_mesh", __doc__)
    parser.add_argument("--answers", type=Path, required=True, help="folder of answers, each below its type")
    arguments = parser.parse_args()
    returning()
    files = (path.read_bytes().partition(b"\n")[::2] for path in sorted(arguments.answers.iterdir()))
    bare = BareMeshServer(dict(files))
    with once_for_all(asyncio.get_running_loop()):
        server = grpc.aio.server(options=options(Limits().without_budgets()))
    methods = {"DeltaAggregatedResources": grpc.stream_stream_rpc_method_handler(bare.serve)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(AGGREGATED, methods),))
    server.add_secure_port(f"127.0.0.1:{arguments.port}", credentials(arguments.tls_dir))
    await server.start()
    await serve_until_signal(arguments, control({}, lambda: {"streams": bare.streams}))
    await server.stop(0.5)


if __name__ == "__main__":
    asyncio.run(main())
