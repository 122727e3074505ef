"""How properties are tried: the same examples in every run, in whatever time a busy machine takes.

`pytest --hypothesis-profile=fresh` tries others each time, and more of them, for who looks for what nobody
has found yet (`make fuzz`).
"""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from controller.process.polling import read_where_it_polls
from tests.envoy import program
from tests.trying import FRESH, STEADY
from tests.typed import Typed

read_where_it_polls()  # as `serve` does, before any test imports gRPC

settings.register_profile(
    "fresh", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=FRESH
)
settings.register_profile(
    "steady", settings.get_profile("fresh"), derandomize=True, print_blob=True, max_examples=STEADY
)
settings.load_profile("steady")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a real Envoy where there is none."""
    if program() is None:
        for item in items:
            if item.get_closest_marker("envoy"):
                item.add_marker(pytest.mark.skip("there is no Envoy: `make envoy` makes one"))


@pytest.fixture(scope="session")
def typed() -> Iterator[Typed]:
    """Start the process that runs the commands of all tests; end it with them."""
    with Typed() as started:
        yield started
