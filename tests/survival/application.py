"""`python application.py ADDRESS PORT`: answers every request 200; after SIGUSR1 with 500."""

import asyncio
import signal
import sys

_STATUSES = {"now": b"200 OK"}


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 " + _STATUSES["now"] + b"\r\ncontent-length: 3\r\n\r\nok\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _main(address: str, port: int) -> None:
    failing = b"500 Internal Server Error"
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _STATUSES.update, {"now": failing})
    server = await asyncio.start_server(_serve, address, port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))
