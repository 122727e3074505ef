"""Keeping the garbage collector from holding the event loop.

A mesh of a thousand services is millions of objects that stay; looking through all of them takes the
collector some 200 ms each time, and finds nothing.
"""

import contextlib
import gc
from collections.abc import Iterator
from typing import Final

THRESHOLDS: Final = (10_000, 20, 50)
"""Allocations before the youngest generation is looked through; how much more seldom older ones are."""


@contextlib.contextmanager
def built_to_stay() -> Iterator[None]:
    """Collect nothing meanwhile, and never look again through what was made: for the first wave.

    Of what is made then, cycles that come loose later are not found; the graph unlinks what it forgets.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        gc.enable()
