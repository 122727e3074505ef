"""Moments by a clock that only goes forward: what waits, waits its time, however the date is set meanwhile.

The clock that knows the date is asked only for what is shown to people.
"""

import time
from datetime import timedelta

Moment = timedelta
"""A moment, as the time since one that nobody knows: only how far two of them are apart means anything."""


def monotonic() -> Moment:
    """Return the present moment."""
    return timedelta(seconds=time.monotonic())
