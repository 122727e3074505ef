"""Counted work, independent of time: lines and calls of our code, text comparisons, characters of output."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Self

import pytest

from tests.tools.forked_cli import ROOT

_OURS = tuple(
    f"{ROOT / path.name}/"
    for path in ROOT.iterdir()
    if path.is_dir() and (path / "__init__.py").is_file() and path.name not in ("tests", "protos")
)
_GENERATED = "<string>"
"""Where the methods of dataclasses stand."""


class Work:
    """Counter of executed lines of our own code while it is entered (once for each turn of a loop)."""

    def __init__(self) -> None:
        self.count = 0
        self._before: Any = None
        self._known: dict[str, bool] = {}

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        Text.work = self
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        Text.work = None

    def said(self, *result: object) -> None:
        """Count texts as well, such as problems and pages: 16 characters are as much as a line."""
        self.count += sum(len(item) if isinstance(item, bytes) else len(str(item)) for item in result) // 16

    def _called(self, frame: FrameType, _: str, __: object) -> Any:
        name = frame.f_code.co_filename
        ours = self._known.get(name)
        if ours is None:
            result = name == _GENERATED or str(Path(name).resolve()).startswith(_OURS)
            ours = self._known[name] = result
        if not ours:
            return None
        self.count += 1
        return self._line

    def _line(self, _: FrameType, event: str, __: object) -> Any:
        self.count += event == "line"
        return self._line


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Count nothing in the block: code runs five times as fast when its lines are not counted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Work, "__enter__", lambda self: self)
        patch.setattr(Work, "__exit__", lambda *_: None)
        yield


class Text(str):
    """A text whose comparisons count as work, also those by Python itself, as in `text in list`."""

    __slots__ = ()

    work: Work | None = None

    def __eq__(self, other: object) -> bool:
        if Text.work is not None:
            Text.work.count += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__
