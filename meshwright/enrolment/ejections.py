"""Endpoints ejected by proxies (outlier detection), as reported by the machines of these proxies."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName

HOLDS: Final = timedelta(minutes=1)
"""Time for which a report is valid unless repeated."""

MOST: Final = 1000
"""Maximum number of endpoints kept per proxy; beyond the maximum the first ones by address are kept."""


@dataclass(frozen=True, slots=True)
class _EjectionReport:
    endpoints: tuple[HostPort, ...]
    until: datetime


class Ejections:
    """The last ejection report of each proxy. A proxy without ejected endpoints has no entry."""

    def __init__(self) -> None:
        self._reports: dict[ProxyName, _EjectionReport] = {}

    def note(self, by: ProxyName, endpoints: Iterable[HostPort], now: datetime) -> None:
        """Replace a proxy's report of ejected endpoints, and drop expired reports of all proxies."""
        kept = tuple(sorted(set(endpoints))[:MOST])
        # Expired reports are dropped on each call, so the dictionary needs no task of its own.
        self._reports = {
            name: report for name, report in self._reports.items() if now < report.until and name != by
        }
        if kept:
            self._reports[by] = _EjectionReport(kept, now + HOLDS)

    def by_address(self, now: datetime) -> Mapping[str, tuple[ProxyName, ...]]:
        """Return the names of the ejecting proxies, sorted, by the IP address of the ejected endpoint."""
        result: dict[str, list[ProxyName]] = {}
        for name, report in sorted(self._reports.items(), key=lambda item: item[0]):
            if now < report.until:
                for host in dict.fromkeys(endpoint.host for endpoint in report.endpoints):
                    result.setdefault(host, []).append(name)
        return {host: tuple(names) for host, names in result.items()}

    def count(self, now: datetime) -> int:
        """Return the number of different endpoints ejected by at least one proxy."""
        return len(
            {
                endpoint
                for report in self._reports.values()
                if now < report.until
                for endpoint in report.endpoints
            }
        )
