"""Times of a reflector: functions of failure counts and a random number from 0 to 1."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Pacing:
    """The times of a reflector, in seconds.

    - After failures the pause begins with `first` and doubles up to `longest`.
    - A watch of at least `steady` counts as working, and a watch of less than `short` as failed.
    - The server is asked to end a watch after `watch`. A watch without any line for `silence` is given up;
      servers
    send a bookmark about every minute.
    - A streaming list without any line for `initial` is not supported by the server. No streaming list may
      take
    longer than `streaming`.
    - After `relist` everything is listed again, so that a fault in a server's watch has a limited effect.
    """

    first: float = 0.8
    longest: float = 30.0
    steady: float = 10.0
    short: float = 1.0
    watch: float = 290.0
    silence: float = 100.0
    initial: float = 20.0
    streaming: float = 300.0
    relist: float = 3600.0

    def pause(self, failures: int, chance: float, requested: float | None = None) -> float:
        """Return the pause after consecutive failures; 0 without any.

        A longer delay requested by the server (`requested`) is respected, up to ten times `longest`.
        """
        if not failures and requested is None:
            return 0.0
        doubled = min(self.first * 2.0 ** min(failures - 1, 16), self.longest) if failures else 0.0
        return max(doubled * (0.5 + chance / 2), min(requested or 0.0, 10 * self.longest))

    def watch_for(self, chance: float) -> int:
        """Return the whole seconds for one watch, with jitter so that watches end at different times."""
        return max(1, round(self.watch * (1 + chance / 5)))

    def relist_after(self, chance: float) -> float:
        """Return the seconds after which all objects are listed again, with jitter."""
        return self.relist * (1 + chance / 5)


PACING: Final = Pacing()
