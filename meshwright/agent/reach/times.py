"""Moments and lengths of time as sentences have them."""

from datetime import datetime, timedelta


def stamp(moment: datetime) -> str:
    """Return a moment in whole seconds, as RFC 3339 writes it."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def length(span: timedelta) -> str:
    """Return a span in its greatest unit and the next one."""
    rest = int(span.total_seconds())
    found: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if found or count:
            found.append(f"{count} {unit}" if count else "")
    return " ".join(filter(None, found[:2])) or "0 s"
