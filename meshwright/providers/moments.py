"""Moments of a monotonic clock: waiting times stay right when the system's date is changed.

The clock with the date is read only for times that people see.
"""

import time
from datetime import timedelta

Moment = timedelta
"""Time since an arbitrary zero; only the difference of two moments has a meaning."""


def monotonic() -> Moment:
    """Return the present moment of the monotonic clock."""
    return timedelta(seconds=time.monotonic())
