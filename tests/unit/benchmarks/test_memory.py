"""Tests of the census, which charges each object once, and of the memory per service."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.memory import added, by_sort, slopes
from tests.unit.benchmarks.census_program import BIG

ROOT = Path(__file__).parents[3]


def test_object_is_charged_only_to_its_first_owner() -> None:
    """A table is charged with its values, and a function with those that it derives; a node has none.

    The census runs in a separate process, because it looks at every object, and the tests have many.
    """
    words = [sys.executable, "-m", "tests.unit.benchmarks.census_program"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    sizes: dict[str, int] = answer["sizes"]
    assert BIG <= sizes.pop("table census words") < 2 * BIG
    assert BIG <= sizes.pop("value __main__.longer_word") < 2 * BIG
    assert answer["bytes in the table"] >= BIG
    assert "node __main__.same_word" in sizes
    assert sum(sizes.values()) < 2 * BIG


def test_constant_memory_is_charged_to_no_service() -> None:
    """The slope between two sizes is computed by owner and by kind of owner."""
    small = {"node a": (1000, 10), "node b": (100, 1), "grpc": (5000, 50)}
    large = {"node a": (3000, 30), "node c": (200, 2), "grpc": (5000, 50)}
    result = slopes([(10, small), (20, large)])
    assert result == {"node a": (200, 2), "node b": (-10, -0.1), "node c": (20, 0.2), "grpc": (0, 0)}
    assert by_sort(result) == {"node": (210, 2.1), "grpc": (0, 0)}


def test_memory_added_by_connections_is_that_of_the_sidecars() -> None:
    """It is the difference to the state without connections, including new and removed owners."""
    nobody, everybody = {"node a": (1000, 10), "node b": (100, 1)}, {"node a": (3000, 15), "grpc": (50, 2)}
    assert added(nobody, everybody) == {"node a": (2000, 5), "node b": (-100, -1), "grpc": (50, 2)}
