"""JSON for people: the same values as a plain page, escaped, without scripts."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

_STYLE: Final = (
    "body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem;color:#1b1f24;background:#fff}"
    "table{border-collapse:collapse;margin:.2rem 0 .6rem}"
    "td,th{border:1px solid #d0d7de;padding:.2rem .5rem;text-align:left;vertical-align:top}"
    "th{background:#f6f8fa;font-weight:600}nav a{margin-right:1rem}"
    "code{font:13px ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}"
    "@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}"
    "th{background:#161b22}td,th{border-color:#30363d}a{color:#58a6ff}}"
)
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


def page(title: str, value: object, links: Sequence[str]) -> str:
    """Return a whole HTML page that shows `value`, with `links` (paths) above it."""
    navigation = "".join(f'<a href="{escape(link)}">{escape(link)}</a>' for link in links)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><nav>{navigation}</nav><h1>{escape(title)}</h1>{_shown(value)}</body></html>\n"
    )


def _shown(value: object) -> str:
    match value:
        case Mapping():
            return _mapping(value)
        case str():
            return f"<code>{escape(value)}</code>"
        case Sequence():
            return _sequence(value)
        case None:
            return "&ndash;"
        case bool():
            return "yes" if value else "no"
        case _:
            return f"<code>{escape(str(value))}</code>"


def _mapping(value: Mapping[object, object]) -> str:
    if not value:
        return "none"
    rows = "".join(
        f"<tr><th>{escape(str(name))}</th><td>{_shown(inner)}</td></tr>" for name, inner in value.items()
    )
    return f"<table>{rows}</table>"


def _sequence(value: Sequence[object]) -> str:
    if not value:
        return "none"
    if not all(isinstance(item, Mapping) for item in value):
        return "<br>".join(_shown(item) for item in value)
    rows = [item for item in value if isinstance(item, Mapping)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(str(name))}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{_shown(row.get(name))}</td>" for name in names) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
