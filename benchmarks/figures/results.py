"""Results of a program: all details as JSON, and values by name for the table of all programs."""

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
"""Numbers by name; a name has words joined by slashes, for example `ours/policy/1000/ready_cpu_s`."""


def name(*words: object) -> str:
    """Return the name of a measured value: the words, joined by slashes."""
    return "/".join(str(word).replace(" ", "-") for word in words)


def machine() -> dict[str, object]:
    """Return a description of the machine: time, CPUs, load, kernel and Python."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "interpreter": str(Path(sys.executable).resolve()),
    }


def place(program: str, output: Path | None, *, quick: bool) -> Path:
    """Return the result file of a program, for example `benchmarks/results/mesh.json`.

    Quick runs have their own files, which the goals ignore.
    """
    if output is not None:
        return output
    return RESULTS / "quick" / f"{program}.json" if quick else RESULTS / f"{program}.json"


def write(path: Path, where: Mapping[str, object], values: Values, **details: Any) -> None:  # noqa: ANN401 - JSON
    """Write the values that a benchmark program measured, and the machine, as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    result = {"machine": where, "values": values, **details}
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def read(paths: Iterable[Path]) -> Values:
    """Read the values of several files or folders of JSON files; later files override earlier ones."""
    result: Values = {}
    for path in paths:
        for item in sorted(path.glob("*.json")) if path.is_dir() else (path,):
            result |= json.loads(item.read_text(encoding="utf-8")).get("values", {})
    return result
