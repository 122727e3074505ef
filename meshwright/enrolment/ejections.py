"""Which endpoints proxies have ejected, as the machines say that keep those proxies. It decides nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName

HOLDS: Final = timedelta(minutes=1)
"""What a machine has said holds for so long, unless it says so again."""

MOST: Final = 1000
"""So many endpoints of one proxy are remembered; of more the first by address."""


@dataclass(frozen=True, slots=True)
class _EjectionReport:
    endpoints: tuple[HostPort, ...]
    until: datetime


class Ejections:
    """What each proxy has ejected, as it was said last; who has ejected nothing is not there."""

    def __init__(self) -> None:
        self._said: dict[ProxyName, _EjectionReport] = {}

    def note(self, by: ProxyName, endpoints: Iterable[HostPort], now: datetime) -> None:
        """Note all that a proxy has ejected, in the place of what was noted; forget what holds no more."""
        kept = tuple(sorted(set(endpoints))[:MOST])
        self._said = {name: each for name, each in self._said.items() if now < each.until and name != by}
        if kept:
            self._said[by] = _EjectionReport(kept, now + HOLDS)

    def by_address(self, now: datetime) -> Mapping[str, tuple[ProxyName, ...]]:
        """Return who has ejected endpoints at each IP address, sorted by name."""
        found: dict[str, list[ProxyName]] = {}
        for name, said in sorted(self._said.items(), key=lambda each: each[0]):
            if now < said.until:
                for host in dict.fromkeys(each.host for each in said.endpoints):
                    found.setdefault(host, []).append(name)
        return {host: tuple(names) for host, names in found.items()}

    def count(self, now: datetime) -> int:
        """Return how many endpoints somebody has ejected."""
        return len({each for said in self._said.values() if now < said.until for each in said.endpoints})
