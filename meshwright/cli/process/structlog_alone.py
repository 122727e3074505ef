"""structlog for commands: import without rich, and log lines on standard error."""

import sys

from meshwright.mesh.terminal.screened_stream import styled


def import_structlog() -> None:
    """Import structlog as if rich were not installed.

    `meshwright.controller.process.logs` writes plain tracebacks. Call before any other import of structlog.
    rich takes a tenth of a server's start time, and 3 MB of memory.
    """
    if "rich" in sys.modules:  # another package imported rich already, so skipping it saves nothing
        return
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]


def on_standard_error() -> None:
    """Send a command's log lines to standard error, because standard output is for the command's result."""
    import structlog

    from meshwright.controller.process.logs import for_people

    structlog.configure(
        processors=[*structlog.get_config()["processors"][:-1], *for_people(sys.stderr)],
        logger_factory=lambda *_: structlog.PrintLogger(styled(sys.stderr)),
    )
