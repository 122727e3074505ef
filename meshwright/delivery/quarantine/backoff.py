"""When what was refused is offered again: soon at first, then less and less often."""

from typing import Final

FIRST_SECONDS: Final = 10.0
LONGEST_SECONDS: Final = 600.0
SPREAD: Final = 0.2
"""By how much of it a pause may be shorter, so that proxies that refused together do not come back so."""


def pause(times: int, jitter: float) -> float:
    """Return for how many seconds what was refused so many times in a row (from 1) is not offered.

    `jitter` is a number from 0 to 1: of two equal pauses that with the greater one is shorter.
    """
    doubled: float = FIRST_SECONDS * 2.0 ** min(times - 1, 10)
    return min(doubled, LONGEST_SECONDS) * (1 - SPREAD * jitter)
