"""The end of the process: one sentence on standard error if something failed, and an exit status."""

import contextlib
import sys
import traceback
from collections.abc import Iterator

from meshwright.cli.errors import CommandFailed, Status
from meshwright.cli.process.standard_streams import ensure_open, words_were_lost


@contextlib.contextmanager
def ending_in_words() -> Iterator[None]:
    """Run a command in this block, flush the output, and end the process with the exit status.

    An internal error never exits with status 1 ("no"), and status 0 ("yes") is used only if all output was
    written.
    """
    ensure_open()
    status: object = None
    try:
        yield
    except CommandFailed as failed:
        status = _print_failure(failed)
    except SystemExit as ended:
        status = ended.code or Status.YES
    except Exception:  # noqa: BLE001 - any internal error must end in a traceback and status 2
        traceback.print_exc()
        status = Status.UNKNOWN
    try:
        # Flushed here, because at interpreter exit a failed write could no longer change the status.
        sys.stdout.flush()
    except CommandFailed as failed:
        status = _print_failure(failed)
    if status is Status.YES and words_were_lost():
        status = Status.UNKNOWN
    if status is not None:
        sys.exit(status)  # type: ignore[arg-type]


def _print_failure(failed: CommandFailed) -> Status:
    sys.stderr.write(failed.in_words())
    return failed.status
