"""Judgements of the clock, compared with the control plane, with certificates, and with the kernel."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from certs.lifetimes import BACKDATED
from meshwright.agent.reach.times import length, stamp
from meshwright.cli.checking.judgements.check import Check

NAME: Final = "clock"
DIFFERS: Final = timedelta(seconds=5)
"""Tolerated difference: `date` in HTTP has whole seconds, and the answer takes time."""
_SET: Final = "set the clock and synchronise it (chrony, systemd-timesyncd); `timedatectl` shows the state"


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of the clock; `kept`: the kernel knows a program for synchronisation (None: unknown)."""

    now: datetime
    kept: bool | None = None

    def __str__(self) -> str:
        return f"{stamp(self.now)}" + (
            "" if self.kept is None or self.kept else ", and the kernel reports the clock as not synchronised"
        )


def beside_control_plane(clock: Clock, ahead: timedelta | None) -> Check:
    """Judge a machine's clock by its lead over the control plane's clock, or None if unknown.

    A new certificate is valid from `BACKDATED` before its creation. A clock further behind rejects new
    certificates.
    """
    if ahead is None:
        return Check.ok(NAME, f"it is {clock}; the control plane's clock is unknown")
    if abs(ahead) <= DIFFERS:
        return Check.ok(NAME, f"it is {clock}; within {DIFFERS.seconds} s of the control plane's clock")
    word = "ahead of" if ahead > timedelta() else "behind"
    text = f"it is {clock}; {length(abs(ahead))} {word} the control plane's clock"
    if abs(ahead) >= BACKDATED:
        return Check.failed(NAME, text, f"peers refuse certificates because of this difference: {_SET}")
    return Check.warning(NAME, text, _SET)


def beside_certificates(clock: Clock, made: Iterable[datetime]) -> Check:
    """Judge a server's clock by the creation times of certificates, which cannot be in the future."""
    newest = max(made, default=None)
    if newest is not None and clock.now < newest - BACKDATED:
        behind = length(newest - clock.now)
        text = (
            f"it is {clock}, but a certificate was issued at {stamp(newest)}, so the clock is behind "
            f"by {behind} or more"
        )
        return Check.failed(NAME, text, f"other machines refuse certificates that are issued now: {_SET}")
    return Check.ok(
        NAME, f"it is {clock}" + ("" if newest is None else "; later than all issued certificates")
    )
