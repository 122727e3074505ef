"""A profile of the event loop's thread by samples: which line ran, each millisecond of CPU time."""

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

INTERVAL: Final = 0.001
SHOWN: Final = 40


@contextmanager
def sampled(output: Path) -> Iterator[None]:
    """Sample until the block ends, then write the lines and functions by share of the samples.

    What runs in C counts for the Python line that called it. The timer counts CPU of all threads, so the
    share of a line that waits (`select`) is that of the other threads: gRPC's, and TLS in them.
    """
    lines: Counter[tuple[CodeType, int]] = Counter()
    functions: Counter[CodeType] = Counter()

    def take(number: int, frame: FrameType | None) -> None:
        del number
        if frame is not None:
            lines[frame.f_code, frame.f_lineno or 0] += 1
        seen = set()
        while frame is not None:
            seen.add(frame.f_code)
            frame = frame.f_back
        functions.update(seen)

    signal.signal(signal.SIGPROF, take)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)  # one may be under way
        named = Counter({f"{_place(code)}:{line}": count for (code, line), count in lines.items()})
        called = Counter({_place(code): count for code, count in functions.items()})
        total = max(1, lines.total())
        with output.open("w", encoding="utf-8") as file:
            for title, counter in (("lines, themselves", named), ("functions, with what they call", called)):
                file.write(f"{title} ({total} samples)\n")
                file.writelines(
                    f"{100 * count / total:6.2f} %  {place}\n" for place, count in counter.most_common(SHOWN)
                )
                file.write("\n")


def _place(code: CodeType) -> str:
    return f"{'/'.join(Path(code.co_filename).parts[-2:])} {code.co_qualname}"
