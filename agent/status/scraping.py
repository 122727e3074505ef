"""One page of Prometheus metrics from several: the proxy's, the application's and the agent's own. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_META: Final = re.compile(r"# (?P<what>TYPE|HELP) (?P<name>\S+)(?: (?P<said>.*))?")
_SAMPLE: Final = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?P<labels>\{.*\})? .*")
_NUMBER: Final = r"[-+]?(?:[0-9.]+(?:[eE][-+]?[0-9]+)?|Inf|NaN)"
_EXEMPLAR: Final = re.compile(rf" # \{{[^{{}}]*\}} {_NUMBER}(?: {_NUMBER})?$")
# Types that OpenMetrics alone knows, and what a parser of the text format makes of such samples.
_OLDER: Final = {
    "unknown": "untyped", "info": "gauge", "stateset": "gauge", "gaugehistogram": "histogram"
}  # fmt: skip
_BEGUN: Final = "_created"
_WITH_BEGIN: Final = frozenset({"counter", "histogram", "summary"})


def classic(page: str) -> str:
    """Return an application's page in the text format, which it may have in OpenMetrics.

    What that format does not have is left out: `# EOF`, `# UNIT`, exemplars, types of OpenMetrics' own. So is
    when counters were begun (`_created`), as many series again as there are counters.
    """
    kinds = dict(_types(page))
    begun = {
        name + _BEGUN
        for family, kind in kinds.items()
        if kind in _WITH_BEGIN
        for name in (family, family.removesuffix("_total"))
    }
    return "".join(f"{line}\n" for line in map(_line, page.splitlines()) if line and _name(line) not in begun)


def _types(page: str) -> Iterator[tuple[str, str]]:
    for found in filter(None, map(_META.match, page.splitlines())):
        if found["what"] == "TYPE":
            yield found["name"], found["said"] or ""


def _line(line: str) -> str:
    """Return a line as the text format has it; empty where that has no such line."""
    if not line.strip() or line.startswith(("# EOF", "# UNIT")):
        return ""
    if found := _META.match(line):
        older = _OLDER.get(found["said"] or "") if found["what"] == "TYPE" else None
        return f"# TYPE {found['name']} {older}" if older else line
    return _EXEMPLAR.sub("", line)


def _name(line: str) -> str:
    found = _META.match(line) or _SAMPLE.match(line)
    return "" if found is None else found["name"]


def merged(pages: Iterable[str]) -> str:
    """Return the pages one after the other, in the text format.

    A family's TYPE or HELP that an earlier page has given is left out: a parser would refuse the whole page.
    """
    seen: set[tuple[str, str]] = set()
    lines: list[str] = []
    for page in pages:
        for line in filter(str.strip, page.splitlines()):
            if found := _META.match(line):
                if (found["what"], found["name"]) in seen:
                    continue
                seen.add((found["what"], found["name"]))
            lines.append(line)
    return "".join(f"{line}\n" for line in lines)
