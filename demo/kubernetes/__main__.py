"""Command `python -m demo.kubernetes`: the bookstore on a node of this machine, its matrix and its scenes."""

import argparse
import asyncio
import contextlib
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from demo.__main__ import locked, report
from demo.display.verdicts import Verdict
from demo.kubernetes import images, inbound, newcomer
from demo.kubernetes.cluster import OwnCluster, own_cluster, volume
from demo.kubernetes.plane import Images, Plane
from demo.kubernetes.scenes import Scenes
from demo.kubernetes.store import PodStore, applications, namespaces
from demo.supervisor import DemoError, others_ended
from demo.walk import Walk

_ENDED: Final = 130

_DESCRIPTION: Final = (
    "Run the bookstore demo on a Kubernetes node on this machine. With --once, check each case of the "
    "acceptance matrix and each scene of an operator's work, and exit: status 0 if all hold, 1 if not."
)


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m demo.kubernetes", description=_DESCRIPTION)
    parser.add_argument("--once", action="store_true", help="Run the matrix and the scenes once, and exit.")
    parser.add_argument("--apps", type=Path, help="Directory with Open Service Mesh's own manifests/apps.")
    parser.add_argument("--scenes", default="", help="Scenes to run, separated by commas. Default: all.")
    parser.add_argument(
        "--state",
        type=Path,
        default=Path(".state/demo-kubernetes"),
        help="State directory of the demo. Default: .state/demo-kubernetes.",
    )
    return parser.parse_args(argv)


class Demo:
    """One run of the Kubernetes demo on one cluster."""

    def __init__(self, cluster: OwnCluster, folder: Path, options: argparse.Namespace) -> None:
        self._cluster = cluster
        self._options = options
        self._began = time.monotonic()
        pictures = Images(images.MESHWRIGHT, images.MESHWRIGHT, "Never")
        self._plane = Plane(cluster.kubectl, pictures, folder)
        self._store = PodStore(self._plane, images.BOOKSTORE)

    async def run(self) -> tuple[Verdict, ...]:
        """Run the first steps of a new user and start the bookstore.

        With --once walk the matrix and the scenes.
        """
        try:
            await self._cluster.kubectl.apply([volume(self._cluster.node)])
            verdicts = [await newcomer.walk(self._plane, partial(print, flush=True))]
            await self._start()
            if not self._options.once:
                print(
                    f"export KUBECONFIG={self._cluster.kubectl.kubeconfig}; press Ctrl-C to stop the demo",
                    flush=True,
                )
                await asyncio.Event().wait()
            tried = partial(inbound.check, self._store, self._cluster.node)
            verdicts += await Walk(self._store, self._print, tried).run()
            wanted = [item for item in self._options.scenes.split(",") if item]
            verdicts += await Scenes(self._store, self._plane, self._print, self._cluster.node).run(wanted)
            return tuple(verdicts)
        finally:
            await self._store.close()

    async def _start(self) -> None:
        await self._cluster.kubectl.apply(namespaces())
        await self._store.deploy(applications(*([self._options.apps] if self._options.apps else [])))
        await self._store.wait()
        self._print("all programs of the bookstore answer")

    def _print(self, line: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {line}", flush=True)


async def until_signal(work: Callable[[], Awaitable[tuple[Verdict, ...]]]) -> tuple[Verdict, ...]:
    """Run `work` to its end, or cancel it at SIGINT, SIGTERM or SIGHUP."""
    task = asyncio.ensure_future(work())

    def end() -> None:
        # Only the first signal counts, because a second Ctrl-C must not interrupt the cleanup.
        if not task.cancelling():
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end)
    try:
        return await task
    finally:
        await others_ended()


@contextlib.contextmanager
def emptied(folder: Path) -> Iterator[Path]:
    """Provide an empty folder and remove it afterwards.

    After an error the folder stays, because it has the logs.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = arguments(argv)
    state: Path = options.state.absolute()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    began = time.monotonic()
    try:
        with locked(state), emptied(state / "run") as folder, own_cluster(folder) as cluster:
            print(f"cluster: ready after {time.monotonic() - began:.0f} s", flush=True)
            verdicts = asyncio.run(until_signal(Demo(cluster, folder, options).run))
    except (KeyboardInterrupt, asyncio.CancelledError):
        shutil.rmtree(state / "run", ignore_errors=True)
        print("stopped by a signal; the cluster is removed")
        return _ENDED if options.once else 0
    except (DemoError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(f"took {time.monotonic() - began:.0f} s")
    return 0 if report(verdicts, Console(width=None if sys.stdout.isatty() else 160)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
