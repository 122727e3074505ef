"""Pages of several become one that Prometheus reads."""

from meshwright.agent.status import scraping


def test_metrics_are_merged_into_one_page() -> None:
    """Families that two pages have are declared once."""
    first = "# HELP a A.\n# TYPE a counter\na 1\n"
    second = '# TYPE a counter\na{x="1"} 2\n\nb 3'
    assert scraping.merged((first, second, "")) == ('# HELP a A.\n# TYPE a counter\na 1\na{x="1"} 2\nb 3\n')
