"""gRPC's way of waiting for sockets, selected before gRPC is imported.

Since 1.80 gRPC for Python reads in threads of its EventEngine. These pass each event to the thread that polls
for Python, which wakes the event loop: three threads wake for one message. Before, the polling thread read by
itself (except in handshakes), and still can without the experiment `event_engine_listener`. According to gRPC
the experiment can be turned off (grpc/grpc#34100), and will be removed at some time (grpc/grpc#42150). A
later gRPC that does not know the name logs a line, and ignores the name.

One thread then reads for all connections, so an endless stream of one connection would take time from the
others. The limit on a connection's bytes (`received_bytes_per_second`, `xds.connections`) prevents this.
"""

import os
from typing import Final

EXPERIMENTS: Final = "GRPC_EXPERIMENTS"
"""gRPC's environment variable; a value set by the operator wins."""

READ_WHERE_IT_POLLS: Final = "-event_engine_listener"


def read_where_it_polls() -> None:
    """Make gRPC's polling thread read the sockets. Call this before gRPC is imported."""
    os.environ.setdefault(EXPERIMENTS, READ_WHERE_IT_POLLS)
