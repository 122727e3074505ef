"""What a program measured: all of it as JSON, and its figures by name, for the table over all programs."""

import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

RESULTS: Final = Path(__file__).parents[1] / "results"

Values = dict[str, float]
"""Numbers by name: words that are joined with slashes, such as `ours/policy/1000/ready_cpu_s`."""


def name(*words: object) -> str:
    """Return the name of a value."""
    return "/".join(str(word).replace(" ", "-") for word in words)


def machine() -> dict[str, object]:
    """Describe where it ran."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "interpreter": str(Path(sys.executable).resolve()),
    }


def place(program: str, output: Path | None, *, quick: bool) -> Path:
    """Return the file of a program's results; a quick run has its own, which figures are not judged by."""
    if output is not None:
        return output
    return RESULTS / "quick" / f"{program}.json" if quick else RESULTS / f"{program}.json"


def write(path: Path, where: Mapping[str, object], values: Values, **details: Any) -> None:  # noqa: ANN401 - JSON
    """Write a program's results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    result = {"machine": where, "values": values, **details}
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def read(paths: Iterable[Path]) -> Values:
    """Return the values of several programs; a folder stands for its JSON files, a later file wins."""
    found: Values = {}
    for path in paths:
        for each in sorted(path.glob("*.json")) if path.is_dir() else (path,):
            found |= json.loads(each.read_text(encoding="utf-8")).get("values", {})
    return found
