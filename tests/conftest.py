"""How properties are tried: the same examples in every run, in whatever time a busy machine takes.

`pytest --hypothesis-profile=fresh` tries others each time, for who looks for what nobody has found yet.
"""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.typed import Typed

settings.register_profile("fresh", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", settings.get_profile("fresh"), derandomize=True, print_blob=True)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def typed() -> Iterator[Typed]:
    """Start the process that runs the commands of all tests; end it with them."""
    with Typed() as started:
        yield started
