"""How long to wait, to listen and to believe: functions of counts and of a chance from 0 to 1."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Pacing:
    """The times of a reflector, in seconds.

    After failures it pauses from `first` on, doubling up to `longest`. A watch that lived for `steady` has
    worked, and one that ended within `short` has not. The server is asked to end a watch after
    `watch`; one that is silent for `silence` is given up, while a server sends a bookmark about every minute.
    A streaming list that is silent for `initial` is no such list, and none takes longer than `streaming`.
    After `relist` everything is listed anew, whatever the watch said: no server's word is taken for good.
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

    def pause(self, failures: int, chance: float, asked: float | None = None) -> float:
        """Return how long to wait after so many failures in a row; none without any.

        What the server `asked` for counts where it is longer, but no more than ten times our longest.
        """
        if not failures and asked is None:
            return 0.0
        doubled = min(self.first * 2.0 ** min(failures - 1, 16), self.longest) if failures else 0.0
        return max(doubled * (0.5 + chance / 2), min(asked or 0.0, 10 * self.longest))

    def watch_for(self, chance: float) -> int:
        """Return the whole seconds of one watch: not all of them end at the same moment."""
        return max(1, round(self.watch * (1 + chance / 5)))

    def relist_after(self, chance: float) -> float:
        """Return how long one list counts."""
        return self.relist * (1 + chance / 5)


PACING: Final = Pacing()
