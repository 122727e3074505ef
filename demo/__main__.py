"""Command `python -m demo`: show the bookstore's live view, or walk the acceptance matrix once."""

import argparse
import asyncio
import contextlib
import fcntl
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from demo import inbound, leftovers, matrix
from demo.bookstore import Bookstore
from demo.display import live_view as live
from demo.display.verdicts import Verdict, grid, wrong
from demo.interception import choose
from demo.supervisor import DemoError, Supervisor
from demo.topology import Mode
from demo.walk import Walk

_STARTS_WITH: Final = "G"
"""Phase at the start of the live demo: bookbuyer buys from both versions, and bookthief is denied."""
_DESCRIPTION: Final = (
    "Run the bookstore demo on this machine: a control plane, sidecars, and a live view of their traffic. "
    "With --once, check each case of the acceptance matrix and exit: status 0 if all hold, 1 if not."
)
_OURS: Final = ("control", "logs", "mesh", "places", "programs", "sidecars", "xtables.lock")
"""Names a demo creates in the state directory; the next demo removes them and leaves other files alone."""


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=_DESCRIPTION)
    parser.add_argument(
        "--once", action="store_true", help="Check each case of the acceptance matrix once, and exit."
    )
    parser.add_argument(
        "--mode",
        choices=("auto", "transparent", "explicit"),
        default="auto",
        help="How traffic reaches the sidecars: transparent (iptables, needs root), explicit (proxy ports), "
        "or auto, which uses transparent if possible.",
    )
    parser.add_argument(
        "--state",
        type=Path,
        default=Path(".state/demo"),
        help="State directory of the demo. Default: .state/demo.",
    )
    return parser.parse_args(argv)


@contextlib.contextmanager
def locked(state: Path) -> Iterator[None]:
    """Lock the state directory against a second demo; raise DemoError if another demo holds the lock."""
    state.mkdir(parents=True, exist_ok=True)
    with (state / "demo.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DemoError(
                f"another demo is running with the state directory {state}: stop it, or use --state"
            ) from error
        yield


def clear(state: Path) -> None:
    """Stop processes of an earlier demo with this state directory, and remove the files of that demo."""
    leftovers.remove(state)
    for path in (state / name for name in _OURS):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


async def demonstrate(state: Path, mode: Mode, *, once: bool, console: Console) -> tuple[Verdict, ...]:
    """Run the demo in a prepared state directory; return the verdicts of the matrix.

    Without `once` the demo shows the live view until it is cancelled.
    """
    began = time.monotonic()
    first = matrix.PHASES[0] if once else next(p for p in matrix.PHASES if p.name == _STARTS_WITH)
    async with Supervisor(state) as supervisor:
        bookstore = await Bookstore.create(state, supervisor, mode)
        await bookstore.start(dict(first.manifests))
        addresses = bookstore.plane.addresses
        print(
            f"control plane: ADS {addresses.ads}, HTTP {addresses.http}, debug pages http://{addresses.debug}/debug\n"
            f"manifests: {bookstore.mesh}   logs: {state / 'logs'}\n"
            f"started in {time.monotonic() - began:.1f} s",
            flush=True,
        )
        if not once:
            await live.show(bookstore, console)
        return await Walk(
            bookstore,
            lambda line: print(line, flush=True),
            partial(inbound.check, inbound.OnOneMachine(bookstore)),
        ).run()


async def run(options: argparse.Namespace, mode: Mode, console: Console) -> tuple[Verdict, ...]:
    """Run the demo until the matrix is done, or raise CancelledError on SIGINT, SIGTERM or SIGHUP."""
    task = asyncio.create_task(
        demonstrate(options.state.absolute(), mode, once=options.once, console=console)
    )

    def end() -> None:
        # Only the first signal counts, because a second Ctrl-C must not interrupt the cleanup.
        if not task.cancelling():
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end)
    return await task


def farewell(state: Path) -> Verdict:
    """Print all remains of the demo (processes, links, shared memory), remove them, and return a verdict."""
    left = leftovers.wait_for_none(state)
    for line in left:
        print(f"demo: not cleaned up: {line}", file=sys.stderr)
    leftovers.remove(state)
    observed = "; ".join(left) or "nothing"
    print(f"left behind: {observed}", flush=True)
    return Verdict("end", "left behind", "nothing", observed, not left)


def report(verdicts: Sequence[Verdict], console: Console) -> bool:
    """Print the matrix, the failed checks and the number of passed checks; return whether all passed."""
    console.print(grid(verdicts))
    for line in wrong(verdicts):
        print(line)
    held = sum(verdict.holds for verdict in verdicts)
    print(f"matrix: {held} of {len(verdicts)} checks passed", flush=True)
    return held == len(verdicts)


def perform(options: argparse.Namespace, console: Console) -> bool:
    """Run the demo, clean up and print the report; return whether all was well.

    Raises DemoError or OSError if the demo cannot run.
    """
    began = time.monotonic()
    state: Path = options.state.absolute()
    mode, why = choose(options.mode)
    print(f"interception: {mode} ({why})", flush=True)
    if empty := matrix.uncontrolled():
        raise DemoError(f"the matrix denies requests that it never allows: {', '.join(empty)}")
    verdicts: tuple[Verdict, ...] = ()
    with locked(state):
        clear(state)
        try:
            verdicts = asyncio.run(run(options, mode, console))
        except asyncio.CancelledError:
            print("stopped by a signal")
        finally:
            last = farewell(state)
    if not verdicts:
        # A signal is the usual end of the live view. With --once the matrix is incomplete, so the demo has
        # failed.
        return last.holds and not options.once
    print(f"took {time.monotonic() - began:.0f} s")
    return report((*verdicts, last), console)


def main(argv: Sequence[str]) -> int:
    """Run the command; return 0 if all was well, else 1."""
    try:
        good = perform(arguments(argv), Console(width=None if sys.stdout.isatty() else 160))
    except (DemoError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
