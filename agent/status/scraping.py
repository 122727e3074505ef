"""One page of Prometheus metrics from several: Envoy's, the application's and the agent's own. Pure."""

import re
from collections.abc import Iterable
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_META: Final = re.compile(r"# (?:TYPE|HELP) (\S+)")


def merged(pages: Iterable[str]) -> str:
    """Return the pages one after the other, in the text format.

    What only OpenMetrics has (`# EOF`, `# UNIT`) is left out, and so is a family's TYPE or HELP that an
    earlier page has given: a parser would refuse the whole page.
    """
    seen: set[str] = set()
    lines: list[str] = []
    for page in pages:
        for line in page.splitlines():
            if line.startswith(("# EOF", "# UNIT")) or not line.strip():
                continue
            if match := _META.match(line):
                if match[0] in seen:
                    continue
                seen.add(match[0])
            lines.append(line)
    return "".join(f"{line}\n" for line in lines)
