"""HTTP pages of the CNI daemon for kubelet and Prometheus: liveness, readiness and metrics."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from aiohttp import web

from meshwright.kubernetes.cni.responses import Outcome
from meshwright.sidecars.layout import LIVE_PATH, READY_PATH

_REQUESTS: Final = "meshwright_cni_requests_total"
_CHANGES: Final = "meshwright_cni_network_changes_total"
_INSTALLED: Final = "meshwright_cni_installed"


class Figures:
    """Counters of requests and of network changes since the start of the CNI daemon."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str]] = Counter()
        self._changes = 0

    def request(self, command: str, outcome: Outcome) -> None:
        """Count a request of the plug-in by CNI command and outcome."""
        self._requests[command, outcome.value] += 1

    def change(self) -> None:
        """Count an addition of the plug-in to the node's network list: the first one, and each repair."""
        self._changes += 1

    def written(self, *, installed: bool) -> str:
        """Return the counters and whether the plug-in is installed, in Prometheus' text format."""
        lines = [f"# TYPE {_REQUESTS} counter"]
        lines += [
            f'{_REQUESTS}{{command="{command}",outcome="{outcome}"}} {count}'
            for (command, outcome), count in sorted(self._requests.items())
        ]
        lines += [f"# TYPE {_CHANGES} counter", f"{_CHANGES} {self._changes}"]
        lines += [f"# TYPE {_INSTALLED} gauge", f"{_INSTALLED} {int(installed)}"]
        return "".join(f"{line}\n" for line in lines)


def application(
    not_installed: Callable[[], str], not_alive: Callable[[], str], figures: Figures
) -> web.Application:
    """Return the pages. Both arguments return a reason, or an empty text if all is well.

    `not_installed`: the runtime does not know the plug-in. `not_alive`: the runtime's requests fail until a
    new daemon starts.
    """

    async def ready(_: web.Request) -> web.Response:
        return _page("ready", not_alive() or not_installed())

    async def live(_: web.Request) -> web.Response:
        return _page("live", not_alive())

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=figures.written(installed=not not_installed()))

    made = web.Application()
    made.router.add_get(READY_PATH, ready)
    made.router.add_get(LIVE_PATH, live)
    made.router.add_get("/metrics", metrics)
    return made


def _page(well: str, words: str) -> web.Response:
    return web.Response(text=f"{words or well}\n", status=503 if words else 200)
