"""Tests of the merging of several metrics pages."""

from meshwright.agent.status import scraping


def test_pages_are_merged_with_one_declaration_per_family() -> None:
    """A family that two pages have is declared once."""
    first = "# HELP a A.\n# TYPE a counter\na 1\n"
    second = '# TYPE a counter\na{x="1"} 2\n\nb 3'
    assert scraping.merged((first, second, "")) == ('# HELP a A.\n# TYPE a counter\na 1\na{x="1"} 2\nb 3\n')
