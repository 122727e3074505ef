"""How properties are tried: the same examples in every run, in whatever time a busy machine takes.

`pytest --hypothesis-profile=fresh` tries others each time, and more of them, for who looks for what nobody
has found yet (`make fuzz`).
"""

import functools
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal import charmap
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.internal.intervalsets import IntervalSet

from meshwright.controller.process.polling import read_where_it_polls
from tests.tools.envoy import program
from tests.tools.forked_cli import Typed
from tests.tools.hypothesis_profiles import FRESH, STEADY
from tests.tools.launcher import installed

gc.disable()  # until all tests are imported, which leaves next to no garbage

read_where_it_polls()  # as `serve` does, before any test imports gRPC

# A script that starts the tests in the background ignores SIGINT for them, and programs that tests start
# would inherit that. With a handler here the programs get the default action.
signal.signal(signal.SIGINT, signal.default_int_handler)

LAUNCHING = Path(tempfile.mkdtemp(prefix="meshwright-launching-"))
LAUNCHING.chmod(0o755)  # commands of other users start there too
os.environ["MESHWRIGHT_COMMAND"] = str(installed(LAUNCHING))  # before any test imports demo.plane

settings.register_profile(
    "fresh", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=FRESH
)
settings.register_profile(
    "steady", settings.get_profile("fresh"), derandomize=True, print_blob=True, max_examples=STEADY
)
settings.load_profile("steady")

_intervals = charmap.intervals_from_codec
_UTF_8 = (IntervalSet(((0, 0xD7FF), (0xE000, 0x10FFFF))), IntervalSet())
"""The characters that UTF-8 encodes (all but surrogates), and those that do not decode to themselves (none).

Hypothesis finds them by encoding every character: in a fresh clone the first test that draws a text takes 2 s
of CPU time more.
"""
charmap.intervals_from_codec = functools.cache(lambda name: _UTF_8 if name == "utf-8" else _intervals(name))


def pytest_unconfigure() -> None:
    """Remove the file that stands for `meshwright`."""
    shutil.rmtree(LAUNCHING, ignore_errors=True)


def pytest_configure(config: pytest.Config) -> None:
    """Let steady examples be free of the constants in our source; a fuzzing run takes those as well.

    Hypothesis reads all our modules for them, which takes each process 0.7 s of CPU time, and 3 s in a fresh
    clone. Without them an edit of one module leaves the examples of all other tests as they were.
    """
    if config.getoption("--hypothesis-profile") != "fresh":
        nothing = Constants()
        providers._get_local_constants = lambda: nothing


def pytest_collection_finish() -> None:
    """Start the collector of garbage."""
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what belongs to `make nightly`, and skip what needs a real Envoy where there is none."""
    if os.environ.get("MESHWRIGHT_SOAK") != "long":
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    if program() is None:
        for item in items:
            if item.get_closest_marker("envoy"):
                item.add_marker(pytest.mark.skip("there is no Envoy: `make envoy` makes one"))


@pytest.fixture(scope="session")
def typed() -> Iterator[Typed]:
    """Start the process that runs the commands of all tests; end it with them."""
    with Typed() as started:
        yield started
