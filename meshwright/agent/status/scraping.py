"""Join of Prometheus pages of the sidecar itself: the agent's and the proxy's. Pure."""

import re
from collections.abc import Iterable
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_META: Final = re.compile(r"# (?P<what>TYPE|HELP) (?P<name>\S+)(?: .*)?")


def merged(pages: Iterable[str]) -> str:
    """Return the pages joined, in the text format.

    A TYPE or HELP line from an earlier page is left out, because a parser would refuse the whole page. An
    example is `# TYPE http_requests_total counter`. For an application's page
    `meshwright.agent.status.application_page` is needed.
    """
    seen: set[tuple[str, str]] = set()
    lines: list[str] = []
    for page in pages:
        for line in filter(str.strip, page.split("\n")):
            if match := _META.match(line):
                if (match["what"], match["name"]) in seen:
                    continue
                seen.add((match["what"], match["name"]))
            lines.append(line)
    return "".join(f"{line}\n" for line in lines)
