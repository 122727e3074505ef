"""Query parameters in docs/debug/api.md against the parameters that the API accepts."""

import re
from collections.abc import Iterator
from pathlib import Path

from meshwright.admin.api.routes import ROUTES
from meshwright.admin.api.tap_query import NAMES
from tests.tools.forked_cli import ROOT

PAGE = (ROOT / "docs" / "debug" / "api.md").read_text()
OF_ALL = "replica"
"""The one parameter of all paths of a server among several."""
ACCEPTED = {route.path: {parameter.name for parameter in route.parameters} for route in ROUTES} | {
    "/tap": set(NAMES)
}


def _documented() -> Iterator[tuple[str, str]]:
    """Yield path and name of each parameter, from the table of paths and from the tables of parameters."""
    for row in re.findall(r"^\| `(/.*)$", PAGE, re.MULTILINE):
        path, _, content = row.partition("` | ")
        listed = re.search(r"parameters (`.*?)(; the response|$)", content)
        names = re.findall(r"`([a-z]+)`", listed[1]) if listed else []
        yield from ((path, name) for name in (*names, *re.findall(r"[?&]([a-z]+)=", content)))
    for section in PAGE.split("\n## `/api/v1")[1:]:
        path = section.partition("`")[0]
        rows = section.partition("| parameter |")[2].partition("\n\n")[0].splitlines()[2:]
        names = [name for row in rows for name in re.findall(r"`([a-z]+)`", row.split("|")[1])]
        wanted = [known for known in ACCEPTED if known.startswith(path.removesuffix("..."))]
        yield from ((known, name) for known in wanted for name in names)


def test_documented_parameters_are_the_accepted_ones() -> None:
    """The page names every parameter of every path, and no other."""
    documented: dict[str, set[str]] = {path: set() for path in ACCEPTED}
    for path, name in _documented():
        documented.setdefault(path, set()).add(name)
    assert {path: names for path, names in documented.items() if names or path in ACCEPTED} == ACCEPTED


def test_urls_in_the_documentation_have_accepted_parameters() -> None:
    """Every URL of the API with a query, on all pages."""
    urls = [
        (path, name)
        for page in sorted(Path(ROOT, "docs").rglob("*.md"))
        for path, query in re.findall(r"/api/v1(/[a-z/]+)\?([^\s'\"`]+)", page.read_text())
        for name in re.findall(r"(?:^|&)([a-z]+)=", query)
    ]
    assert ("/stat/services", "to") in urls
    assert [(path, name) for path, name in urls if name not in ACCEPTED[path] | {OF_ALL}] == []
