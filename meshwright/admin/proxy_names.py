"""Search for a proxy by its common name, UUID, workload, or the beginning of its UUID."""

from collections.abc import Iterable
from typing import Final

from catalog.store.inventory import holder_of
from catalog.store.view import View
from meshwright.admin.readers import ProxyReading
from meshwright.delivery.proxies.status import ProxyStatus
from meshwright.mesh.problems.spelling import alike
from meshwright.mesh.workload import Workload

CANDIDATES: Final = 8
"""Number of names in an error message."""


class NothingToShow(LookupError):
    """The requested object does not exist, or the name is ambiguous; the message is one sentence."""


def find(reading: ProxyReading, wanted: str) -> ProxyStatus:
    """Return the only proxy that matches a name; raise NothingToShow with the candidates.

    The search has four steps: the full common name or UUID, a workload's `namespace/name`, a workload's name
    alone, and the beginning of a UUID. The first step with a match counts. The match must be unique: for
    example, `web` is ambiguous if two namespaces have a workload `web`.
    """
    statuses, view = reading.proxies(), reading.view()
    # A generator: workloads are looked up only if no common name or UUID matches.
    for result in _candidates(statuses, view, wanted):
        if len(result) == 1:
            return result[0]
        if result:
            text = _listed(_described(status, view) for status in result)
            words = f"{wanted[:200]!r} matches {len(result)} proxies: use the name of one of them: {text}"
            raise NothingToShow(words)
    raise NothingToShow(f"proxy {wanted[:200]!r} does not exist{_suggested(statuses, view, wanted)}")


def workload_of(status: ProxyStatus, view: View | None) -> Workload | None:
    """Return a proxy's workload, or None if the workload is unknown."""
    if view is None or not status.known:
        return None
    return holder_of(view, status.name)


def _candidates(
    statuses: tuple[ProxyStatus, ...], view: View | None, wanted: str
) -> Iterable[list[ProxyStatus]]:
    yield [status for status in statuses if wanted in (str(status.name), status.name.uuid)]
    by_workload = [(status, workload_of(status, view)) for status in statuses]
    yield [status for status, workload in by_workload if workload and str(workload.key) == wanted]
    yield [status for status, workload in by_workload if workload and workload.key.name == wanted]
    yield [status for status in statuses if wanted and status.name.uuid.startswith(wanted)]


def _described(status: ProxyStatus, view: View | None) -> str:
    workload = workload_of(status, view)
    return f"{workload.key} ({status.name})" if workload is not None else str(status.name)


def _suggested(statuses: tuple[ProxyStatus, ...], view: View | None, wanted: str) -> str:
    if not statuses:
        return "; the server does not know any proxy yet"
    names: dict[str, ProxyStatus] = {}
    for status in statuses:
        workload = workload_of(status, view)
        called = (str(workload.key), workload.key.name) if workload is not None else ()
        names.update(dict.fromkeys((str(status.name), status.name.uuid, *called), status))
    result = dict.fromkeys(names[item] for item in alike(wanted, names, CANDIDATES)) or statuses
    return "; known proxies: " + _listed(_described(status, view) for status in result)


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - CANDIDATES} more" if len(every) > CANDIDATES else ""
    return ", ".join(every[:CANDIDATES]) + more
