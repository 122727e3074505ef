"""Sampling profiler of this process: CPU time by line and function, in all threads."""

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

INTERVAL: Final = 0.002
SWITCHING: Final = 0.0001
"""Switch interval of threads in seconds.

With a longer one, samples gather where a thread gives way by itself.
"""
SHOWN: Final = 60
_TASKS: Final = Path("/proc/self/task")


class Profile:
    """Running profiler: charges the CPU time of each thread since the last sample to its present line.

    CPU time of C code counts for the calling Python line. Threads without Python code, for example gRPC's,
    are charged by their names.
    """

    def __init__(self) -> None:
        self._lines: Counter[tuple[CodeType, int]] = Counter()
        self._functions: Counter[CodeType] = Counter()
        self._native: Counter[str] = Counter()
        self._used: dict[int, int] = {}
        self._switching = sys.getswitchinterval()
        sys.setswitchinterval(SWITCHING)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="samples", daemon=True)
        self._thread.start()

    def end(self, output: Path) -> None:
        """Stop the profiler, and write lines and functions by their share of CPU time."""
        self._ending.set()
        self._thread.join()
        sys.setswitchinterval(self._switching)
        lines = Counter({f"{_place(code)}:{line}": used for (code, line), used in self._lines.items()})
        lines.update(self._native)
        functions: Counter[str] = Counter()
        for code, used in self._functions.items():
            functions[_place(code)] += used
        total = max(1, lines.total())
        with output.open("w", encoding="utf-8") as file:
            for title, counter in (
                ("lines, without called functions", lines),
                ("functions, with called functions", functions),
            ):
                file.write(f"{title} ({total / 1e9:.3f} s CPU)\n")
                file.writelines(
                    f"{100 * used / total:6.2f} %  {place}\n" for place, used in counter.most_common(SHOWN)
                )
                file.write("\n")

    def _run(self) -> None:
        own = threading.get_native_id()
        while not self._ending.wait(INTERVAL):
            frames = sys._current_frames()  # noqa: SLF001 - documented, and there is no other way
            known = {thread.native_id: frames.get(thread.ident or 0) for thread in threading.enumerate()}
            for task in os.listdir(_TASKS):  # noqa: PTH208 - many times a second
                number = int(task)
                used = self._spent(number)
                # The profiler's own thread would distort the shares.
                if used and number != own:
                    self._take(number, known.get(number), used)

    def _spent(self, number: int) -> int:
        """Return the nanoseconds of CPU time of a thread since the last call; 0 at the first."""
        try:
            now = int((_TASKS / str(number) / "schedstat").read_bytes().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            return 0  # the thread has ended
        before, self._used[number] = self._used.get(number, now), now
        return now - before

    def _take(self, number: int, frame: FrameType | None, used: int) -> None:
        if frame is None:
            self._native[f"(thread) {_comm(number)}"] += used
            return
        self._lines[frame.f_code, frame.f_lineno or 0] += used
        # A recursive function counts once per sample.
        seen = set()
        frame_type: FrameType | None = frame
        while frame_type is not None:
            seen.add(frame_type.f_code)
            frame_type = frame_type.f_back
        for code in seen:
            self._functions[code] += used


@contextmanager
def sampled(output: Path) -> Iterator[None]:
    """Run the profiler until the end of the block, then write the profile."""
    profile = Profile()
    try:
        yield
    finally:
        profile.end(output)


def sample_on_signal(folder: Path) -> None:
    """Run the profiler from each SIGUSR1 to the next; write `1.txt`, `2.txt` and so on in the folder."""
    running: list[Profile] = []
    written = 0

    def toggle(number: int, frame: FrameType | None) -> None:
        nonlocal written
        del number, frame
        if not running:
            running.append(Profile())
            return
        written += 1
        running.pop().end(folder / f"{written}.txt")

    signal.signal(signal.SIGUSR1, toggle)


def _comm(number: int) -> str:
    try:
        return (_TASKS / str(number) / "comm").read_text("utf-8").strip()
    except (FileNotFoundError, ProcessLookupError):
        return "ended"


def _place(code: CodeType) -> str:
    return f"{'/'.join(Path(code.co_filename).parts[-2:])} {code.co_qualname}"
