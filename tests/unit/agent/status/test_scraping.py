"""Pages of several become one that Prometheus reads."""

from collections.abc import Iterator

import pytest
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    enable_created_metrics,
    generate_latest,
)
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from agent.status import scraping


def _application() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("orders", "Orders.", registry=registry).inc(3, exemplar={"trace_id": "ab # {c}"[:2]})
    Histogram("taken_seconds", "Taken.", registry=registry, buckets=(1,)).observe(2, {"trace_id": "abc"})
    return registry


def _read(text: str) -> dict[str, float]:
    families = text_string_to_metric_families(text)
    return {f"{each.name}{each.labels}": each.value for family in families for each in family.samples}


EXPECTED = {
    "orders_total{}": 3,
    "taken_seconds_bucket{'le': '1.0'}": 0,
    "taken_seconds_bucket{'le': '+Inf'}": 1,
    "taken_seconds_count{}": 1,
    "taken_seconds_sum{}": 2,
}


@pytest.fixture
def with_created() -> Iterator[None]:
    """Have the library say when counters were begun, as it does for applications that let it."""
    enable_created_metrics()  # type: ignore[no-untyped-call] # theirs
    yield
    disable_created_metrics()  # type: ignore[no-untyped-call] # theirs


@pytest.mark.usefixtures("with_created")
def test_an_applications_page_in_either_format() -> None:
    """The same series, without exemplars, which the text format has not, and without when each was begun."""
    registry = _application()
    of_text = generate_latest(registry).decode()
    of_open = openmetrics.generate_latest(registry).decode()  # type: ignore[no-untyped-call] # theirs
    assert "_created" in of_text
    assert "_created" in of_open
    assert " # {" in of_open
    assert _read(scraping.classic(of_text)) == EXPECTED
    assert _read(scraping.classic(of_open)) == EXPECTED
    assert "_created" not in scraping.classic(of_text) + scraping.classic(of_open)


def test_what_only_looks_like_it_stays() -> None:
    """A gauge of one's own that ends in `_created`, and a label that holds what an exemplar begins with."""
    page = '# TYPE orders_created gauge\norders_created 5\na{b="x # {c} 1"} 5\n'
    page += 'a{b=" # {c=\\"d\\"} 1"} 6 1700000000000\n'
    assert scraping.classic(page) == page


def test_types_of_openmetrics_are_older_ones() -> None:
    """A parser of the text format would refuse the page for a type that it does not know."""
    page = "# TYPE a info\na_info 1\n# TYPE b unknown\nb 1\n# TYPE c stateset\nc 1\n# UNIT b s\n# EOF\n"
    assert scraping.classic(page) == "# TYPE a gauge\na_info 1\n# TYPE b untyped\nb 1\n# TYPE c gauge\nc 1\n"


def test_metrics_are_merged_into_one_page() -> None:
    """Families that two pages have are declared once."""
    first = "# HELP a A.\n# TYPE a counter\na 1\n"
    second = '# TYPE a counter\na{x="1"} 2\n\nb 3'
    assert scraping.merged((first, second, "")) == ('# HELP a A.\n# TYPE a counter\na 1\na{x="1"} 2\nb 3\n')
