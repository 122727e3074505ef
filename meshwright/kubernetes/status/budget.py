"""How much may be written: so much in a minute, and no more at once."""

from meshwright.kubernetes.status.attempts import NotWritten


class Budget:
    """Writes that may be made at `per_minute`; those not made are saved up, as many as `at_once`."""

    def __init__(self, per_minute: float, at_once: float) -> None:
        self._rate, self._most = per_minute / 60, at_once
        self._left, self._at = at_once, float("-inf")

    def take(self, now: float) -> None:
        """Take one; `now` is of a clock that only goes forward. Raises NotWritten while there is none."""
        if self._at > float("-inf"):
            self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            raise NotWritten(now + (max(1.0, self._most / 6) - self._left) / self._rate)  # for some at once
        self._left -= 1
