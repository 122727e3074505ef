"""Texts for times and durations."""

from datetime import datetime, timedelta


def stamp(moment: datetime) -> str:
    """Return a time in whole seconds, in the format of RFC 3339."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def length(span: timedelta) -> str:
    """Return a duration in the two greatest units, for example `2 h 5 min`."""
    rest = int(span.total_seconds())
    result: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if result or count:
            result.append(f"{count} {unit}" if count else "")
    return " ".join(filter(None, result[:2])) or "0 s"
