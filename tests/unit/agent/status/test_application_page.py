"""Tests of an application's metrics page as a part of a valid Prometheus page."""

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

from meshwright.agent.status.application_page import (
    MOST_LINES,
    ApplicationPage,
    DropReason,
    TooManyLines,
    application_page,
)


def _application() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("orders", "Orders.", registry=registry).inc(3, exemplar={"trace_id": "ab # {c}"[:2]})
    Histogram("taken_seconds", "Taken.", registry=registry, buckets=(1,)).observe(2, {"trace_id": "abc"})
    return registry


def _read(page: ApplicationPage) -> dict[str, float]:
    families = text_string_to_metric_families(page.content.decode())
    return {f"{item.name}{item.labels}": item.value for family in families for item in family.samples}


EXPECTED = {
    "orders_total{}": 3,
    "taken_seconds_bucket{'le': '1.0'}": 0,
    "taken_seconds_bucket{'le': '+Inf'}": 1,
    "taken_seconds_count{}": 1,
    "taken_seconds_sum{}": 2,
}


@pytest.fixture
def with_created() -> Iterator[None]:
    """Enable the client library's `_created` series during a test."""
    enable_created_metrics()  # type: ignore[no-untyped-call] # theirs
    yield
    disable_created_metrics()  # type: ignore[no-untyped-call] # theirs


@pytest.mark.usefixtures("with_created")
def test_page_in_either_format_gives_the_same_series() -> None:
    """Prometheus text and OpenMetrics give the same series, without exemplars and `_created` series."""
    registry = _application()
    of_text = generate_latest(registry)
    of_open = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call] # theirs
    assert b"_created" in of_text
    assert b"_created" in of_open
    assert b" # {" in of_open
    for page in map(application_page, (of_text, of_open)):
        assert _read(page) == EXPECTED
        assert b"_created" not in page.content
        assert page.dropped == {}


def test_lines_that_only_look_like_created_or_exemplars_are_kept() -> None:
    """A gauge that ends in `_created`, and a label that contains the start of an exemplar, are kept."""
    page = '# TYPE orders_created gauge\norders_created 5\na{b="x # {c} 1"} 5\n'
    page += 'a{b=" # {c=\\"d\\"} 1"} 6 1700000000000\na{b="two\u2028lines",} NaN\na{b="}"} +Inf\n'
    assert application_page(page.encode()) == ApplicationPage(page.encode())


def test_openmetrics_types_become_prometheus_types() -> None:
    """OpenMetrics types become older ones, because a parser of the text format refuses unknown types."""
    page = b"# TYPE a info\na_info 1\n# TYPE b unknown\nb 1\n# TYPE c stateset\nc 1\n# UNIT b s\n# EOF\n"
    assert application_page(page) == ApplicationPage(
        b"# TYPE a gauge\na_info 1\n# TYPE b untyped\nb 1\n# TYPE c gauge\nc 1\n"
    )


def test_openmetrics_timestamps_become_milliseconds() -> None:
    """OpenMetrics timestamps are in seconds, which a parser of the text format refuses."""
    assert (
        application_page(b"a 1 1520879607.789\nb 1 15\n# EOF\n").content == b"a 1 1520879607789\nb 1 15000\n"
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("envoy_server_live 1", DropReason.RESERVED),
        ("# TYPE envoy_server_live counter", DropReason.RESERVED),
        ("# HELP meshwright_edge_requests_total None.", DropReason.RESERVED),
        ('meshwright_edge_requests_total{status_class="2xx"} 99', DropReason.RESERVED),
        ("meshwright_agent_envoys 2", DropReason.RESERVED),
        ("up 1", DropReason.RESERVED),
        ("scrape_samples_scraped 1", DropReason.RESERVED),
        ('a{__name__="envoy_server_live"} 1', DropReason.RESERVED),
        ('{"envoy_server_live"} 1', DropReason.MALFORMED),
        ("own 2", DropReason.DUPLICATE),
        ("own {} 2 17", DropReason.DUPLICATE),
        ('named{y="2", x="1"} 7', DropReason.DUPLICATE),
        ("# TYPE own gauge", DropReason.DUPLICATE),
        ("# TYPE named gauge", DropReason.DUPLICATE),
        ("# HELP own Again.", DropReason.DUPLICATE),
        ("# TYPE a gouge", DropReason.MALFORMED),
        ("a", DropReason.MALFORMED),
        ("a 1 2 3", DropReason.MALFORMED),
        ("a 1e999", DropReason.MALFORMED),
        (f"a {'9' * 350}", DropReason.MALFORMED),
        ("a 0x1p2", DropReason.MALFORMED),
        ("a 1_000", DropReason.MALFORMED),
        ("a 1 1.5", DropReason.MALFORMED),
        (f"a 1 {'9' * 19}", DropReason.MALFORMED),
        ('a{b="c} 1', DropReason.MALFORMED),
        ('a{b="c"', DropReason.MALFORMED),
        ('a{b="1" c="2"} 1', DropReason.MALFORMED),
        ('a{b="1",b="2"} 1', DropReason.MALFORMED),
        ("a{,} 1", DropReason.MALFORMED),
        ("a{b=c} 1", DropReason.MALFORMED),
        ("<html>", DropReason.MALFORMED),
        ("a\0 1", DropReason.MALFORMED),
        ("a 1\rb 1", DropReason.MALFORMED),
    ],
)
def test_line_that_would_break_the_page_is_left_out(line: str, reason: DropReason) -> None:
    """A reserved, duplicate or malformed line is counted by its reason, and the lines around it are kept."""
    before = '# HELP own Own.\n# TYPE own counter\nown 1\nnamed{x="1",y="2"} 1\n'
    result = application_page(f"{before}{line}\nlast 1\n".encode())
    assert (result.content.decode(), result.dropped) == (f"{before}last 1\n", {reason: 1})


def test_line_that_is_not_text_is_left_out() -> None:
    """A label in another encoding affects its own line only."""
    assert application_page(b'a{b="\xff"} 1\r\nc 1\r\n') == ApplicationPage(
        b"c 1\n", {DropReason.MALFORMED: 1}, "a"
    )


def test_first_dropped_line_is_named_without_labels() -> None:
    """The name of the first dropped line is kept without labels and value, because these may be secret."""
    result = application_page(b'a{b="secret"} x\nup 1\n# TYPE envoy_x gauge\n')
    assert (result.first, result.dropped) == ("a", {DropReason.MALFORMED: 1, DropReason.RESERVED: 2})
    assert application_page(b"#  TYPE envoy_x gauge\n").first == "# TYPE envoy_x"


def test_page_with_too_many_lines_is_refused() -> None:
    """Empty lines count too."""
    assert application_page(b"\n" * MOST_LINES) == ApplicationPage()
    with pytest.raises(TooManyLines, match=f"more than {MOST_LINES} lines"):
        application_page(b"\n" * (MOST_LINES + 1))
