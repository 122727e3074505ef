"""Which of gRPC's ways to wait for sockets the server has: said to it before it is imported.

Since 1.80 gRPC for Python reads what comes in threads of its EventEngine, which hand each event to the thread
that polls for Python, which wakes the event loop: three threads wake for a message. Before, the polling
thread read by itself (handshakes apart), and it still can: that is what `event_engine_listener` says, of
which gRPC has it that it may be turned off like this (grpc/grpc#34100), and that it will go at some time
(grpc/grpc#42150). A gRPC that knows it no longer says so in a line of its own, and does as it does.

One thread then reads for all connections, so what one sends without end would take it from the others: the
bound on a connection's bytes (`received_bytes_per_second`, `xds.connections`) stands before that.
"""

import os
from typing import Final

EXPERIMENTS: Final = "GRPC_EXPERIMENTS"
"""gRPC's environment variable; whoever sets it is heard instead."""

READ_WHERE_IT_POLLS: Final = "-event_engine_listener"


def read_where_it_polls() -> None:
    """Have what comes be read by the thread that polls; to be called before gRPC is imported."""
    os.environ.setdefault(EXPERIMENTS, READ_WHERE_IT_POLLS)
