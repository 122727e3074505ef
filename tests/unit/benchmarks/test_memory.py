"""A census charges each object once, and says what one service more holds."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.memory import added, by_sort, slopes
from tests.unit.benchmarks.counted import BIG

ROOT = Path(__file__).parents[3]


def test_an_object_is_charged_to_its_first_owner_alone() -> None:
    """What the table has is the table's; what was made of it is its function's; a node has none.

    In a process of its own: a census looks at every object there is, and of the tests there are many.
    """
    words = [sys.executable, "-m", "tests.unit.benchmarks.counted"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    sizes: dict[str, int] = answer["sizes"]
    assert BIG <= sizes.pop("table census words") < 2 * BIG
    assert BIG <= sizes.pop("value __main__.longer_word") < 2 * BIG
    assert answer["bytes in the table"] >= BIG
    assert "node __main__.same_word" in sizes
    assert sum(sizes.values()) < 2 * BIG


def test_what_there_is_anyway_is_nobodys_share() -> None:
    """The slope between two sizes, by owner and by sort of owner."""
    small = {"node a": (1000, 10), "node b": (100, 1), "grpc": (5000, 50)}
    large = {"node a": (3000, 30), "node c": (200, 2), "grpc": (5000, 50)}
    result = slopes([(10, small), (20, large)])
    assert result == {"node a": (200, 2), "node b": (-10, -0.1), "node c": (20, 0.2), "grpc": (0, 0)}
    assert by_sort(result) == {"node": (210, 2.1), "grpc": (0, 0)}


def test_what_connecting_adds_is_the_sidecars() -> None:
    """What is there more of than while nobody is connected, what came anew and what is gone included."""
    nobody, everybody = {"node a": (1000, 10), "node b": (100, 1)}, {"node a": (3000, 15), "grpc": (50, 2)}
    assert added(nobody, everybody) == {"node a": (2000, 5), "node b": (-100, -1), "grpc": (50, 2)}
