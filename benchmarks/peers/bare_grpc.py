"""Command `python -m benchmarks.peers.bare_grpc`: minimum cost of a push with grpc.aio.

The handler is empty: when resources change, every stream gets prepared bytes and a nonce, and requests are
read and dropped. There is no protocol, no limit and no state per client. Resources, mTLS and control port are
those of `benchmarks/synthetic_server.py`.
"""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

import grpc
import grpc.aio

from benchmarks.synthetic.frame import control, flags, serve_until_signal
from benchmarks.synthetic.resources import assignment
from xds.discovery import AGGREGATED
from xds.limits import Limits
from xds.protocol.resources.resource import ENDPOINT, Resource, Version
from xds.protocol.wire import Nonce, Response, delta_response_body, response_body, with_nonce
from xds.server.listener import options
from xds.stream_status import Variant

_METHODS = {"DeltaAggregatedResources": Variant.DELTA, "StreamAggregatedResources": Variant.SOTW}


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    return flags("benchmarks.peers.bare_grpc", __doc__).parse_args(argv)


class BareGrpcServer:
    """gRPC server with prepared bytes as responses; its streams wait for changed bytes."""

    def __init__(self, services: int, endpoints: int) -> None:
        self.streams = 0
        self._endpoints = endpoints
        self._revision = 0
        self._changed = asyncio.Event()
        self._first = self._bodies([assignment(number, endpoints, 0) for number in range(services)])
        self._news = self._first

    def bump(self) -> None:
        """Change the endpoints of the first assignment, and send the change to every stream."""
        self._revision += 1
        self._news = self._bodies([assignment(0, self._endpoints, self._revision)])
        # Each change has its own event, so that a stream busy with writing misses none.
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the two methods (delta and SotW) of the aggregated discovery service."""

        def handler(variant: Variant) -> grpc.RpcMethodHandler:
            async def handle(requests: object, context: grpc.aio.ServicerContext) -> None:
                del requests
                await self._serve(variant, context)

            return grpc.stream_stream_rpc_method_handler(handle)

        return grpc.method_handlers_generic_handler(
            AGGREGATED, {method: handler(variant) for method, variant in _METHODS.items()}
        )

    async def _serve(self, variant: Variant, context: grpc.aio.ServicerContext) -> None:
        await context.read()
        self.streams += 1
        writer = asyncio.create_task(self._write(variant, context))
        try:
            while await context.read() is not grpc.aio.EOF:
                pass
        finally:
            writer.cancel()
            self.streams -= 1

    async def _write(self, variant: Variant, context: grpc.aio.ServicerContext) -> None:
        body, nonce = self._first[variant], 0
        while True:
            nonce += 1
            changed = self._changed
            await context.write(with_nonce((body,), Nonce(str(nonce))))
            await changed.wait()
            body = self._news[variant]

    def _bodies(self, resources: Sequence[Resource]) -> dict[Variant, bytes]:
        response = Response(ENDPOINT, Version(str(self._revision)), Nonce(""), tuple(resources))
        return {
            Variant.SOTW: b"".join(response_body(response, "bare")),
            Variant.DELTA: b"".join(delta_response_body(response, "bare")),
        }


def credentials(directory: Path) -> grpc.ServerCredentials:
    """Return the server's TLS credentials; clients must have a certificate."""
    authority, chain, key = ((directory / name).read_bytes() for name in ("ca.pem", "s.pem", "s.key"))
    return grpc.ssl_server_credentials([(key, chain)], authority, require_client_auth=True)


async def serve(arguments: argparse.Namespace) -> None:
    """Serve prepared bytes until SIGTERM or SIGINT."""
    bare = BareGrpcServer(arguments.services, arguments.endpoints)
    server = grpc.aio.server(options=options(Limits().without_budgets()))
    server.add_generic_rpc_handlers((bare.handlers(),))
    server.add_secure_port(f"127.0.0.1:{arguments.port}", credentials(arguments.tls_dir))
    await server.start()
    await serve_until_signal(arguments, control({"bump": bare.bump}, lambda: {"streams": bare.streams}))
    await server.stop(0.5)


def main() -> None:
    """Run the bare gRPC server."""
    asyncio.run(serve(arguments()))


if __name__ == "__main__":
    main()
