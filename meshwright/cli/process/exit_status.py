"""How the process ends: with one sentence on standard error where something failed, and a status."""

import contextlib
import sys
import traceback
from collections.abc import Iterator

from meshwright.cli.errors import CommandFailed, Status
from meshwright.cli.process.standard_streams import stand_open, words_were_lost


@contextlib.contextmanager
def ending_in_words() -> Iterator[None]:
    """End the process where a command ends or fails, with its status; all it has printed is written by then.

    A fault of the program's own is no NO, and nothing is a YES of which a word was lost.
    """
    stand_open()
    status: object = None
    try:
        yield
    except CommandFailed as failed:
        status = _said(failed)
    except SystemExit as ended:
        status = ended.code or Status.YES
    except Exception:  # noqa: BLE001 - whatever it is, it has been printed, and the status is said
        traceback.print_exc()
        status = Status.UNKNOWN
    try:
        sys.stdout.flush()
    except CommandFailed as failed:
        status = _said(failed)
    if status is Status.YES and words_were_lost():
        status = Status.UNKNOWN
    if status is not None:
        sys.exit(status)  # type: ignore[arg-type]


def _said(failed: CommandFailed) -> Status:
    sys.stderr.write(failed.in_words())
    return failed.status
