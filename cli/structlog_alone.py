"""Importing structlog without rich, which it would import to print tracebacks, and keep."""

import sys


def import_structlog() -> None:
    """Import it as if rich were not installed: `controller.process.logs` has tracebacks as text before.

    To be called before whatever imports structlog. Of a server's start rich is a tenth, and 3 MB stay.
    """
    if "rich" in sys.modules:  # it is there already, whoever needs it
        return
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]
