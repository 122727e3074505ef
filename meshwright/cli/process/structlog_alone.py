"""structlog for commands: imported without rich, and what a command's parts log on standard error."""

import sys

from meshwright.mesh.terminal.screened_stream import styled


def import_structlog() -> None:
    """Import it as if rich were not installed; `meshwright.controller.process.logs` has plain tracebacks.

    To be called before whatever imports structlog. Of a server's start rich is a tenth, and 3 MB stay.
    """
    if "rich" in sys.modules:  # it is there already, whoever needs it
        return
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]


def on_standard_error() -> None:
    """Have what is logged in a command go to standard error: standard output is its answer's alone."""
    import structlog

    from meshwright.controller.process.logs import for_people

    structlog.configure(
        processors=[*structlog.get_config()["processors"][:-1], *for_people(sys.stderr)],
        logger_factory=lambda *_: structlog.PrintLogger(styled(sys.stderr)),
    )
