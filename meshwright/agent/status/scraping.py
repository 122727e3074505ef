"""One page of Prometheus metrics from several of the sidecar's own: the agent's and the proxy's. Pure."""

import re
from collections.abc import Iterable
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_META: Final = re.compile(r"# (?P<what>TYPE|HELP) (?P<name>\S+)(?: .*)?")


def merged(pages: Iterable[str]) -> str:
    """Return the pages one after the other, in the text format.

    A family's TYPE or HELP that an earlier page has given is left out: a parser would refuse the whole page.
    An application's page needs more than that: `meshwright.agent.status.application_page`.
    """
    seen: set[tuple[str, str]] = set()
    lines: list[str] = []
    for page in pages:
        for line in filter(str.strip, page.split("\n")):
            if found := _META.match(line):
                if (found["what"], found["name"]) in seen:
                    continue
                seen.add((found["what"], found["name"]))
            lines.append(line)
    return "".join(f"{line}\n" for line in lines)
