"""How often proxies report: often while they are few, and never so often that it costs much. Pure."""

from typing import Final

LEAST_SECONDS: Final = 10
MOST_SECONDS: Final = 600
SECONDS_PER_PROXY: Final = 0.3
"""So a control plane takes less than 2 % of a processor for reports: see docs/telemetry.md."""


def every_seconds(proxies: int) -> int:
    """Return after how many seconds each of so many proxies is to report again."""
    return round(min(MOST_SECONDS, max(LEAST_SECONDS, proxies * SECONDS_PER_PROXY)))
