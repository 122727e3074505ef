"""Where a name leads: each to the page that says what there is to know of it."""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, urlencode

from meshwright.admin.html.markup import Markup, name, tag
from meshwright.mesh import kinds
from meshwright.mesh.kinds import Kind

_KINDS: Final = sorted(
    {each.name for each in vars(kinds).values() if isinstance(each, Kind) and each.name[:1].isupper()}
)
_OBJECT: Final = re.compile(rf"\b(?:{'|'.join(_KINDS)})(?:\.[a-z0-9.-]+)? [a-z0-9.-]+/[\w.:-]*\w")

_PROXY: Final = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+){2}(?= [a-z])")


def href(path: str, query: Mapping[str, str] | None = None, anchor: str = "") -> str:
    """Return an address on this server."""
    return path + (f"?{urlencode(query)}" if query else "") + (f"#{quote(anchor, safe='')}" if anchor else "")


def link(shown: object, to: str) -> Markup:
    """Return a link."""
    return tag("a", name(shown), href=to)


def proxy(named: str, shown: str = "") -> Markup:
    """Return a link to what one proxy was told."""
    return link(shown or named, href("/debug/proxy/show", {"proxy": named}))


def mesh_object(key: str, shown: str = "") -> Markup:
    """Return a link to an object, by its kind and name: `Service shop/store`."""
    return link(shown or key, object_address(key))


def object_address(key: str) -> str:
    """Return the address of an object's page; that of an account is whom it may call.

    Also of what else a configuration is made from (`certificate shop/store`).
    """
    kind, _, path = key.rpartition(" ")
    match kind:
        case kinds.SERVICE_ACCOUNT.name:
            return href("/debug/access", {"source": path})
        case kinds.CERTIFICATE.name:
            return href("/debug/certs", anchor=path)
        case kinds.TRUST_BUNDLE.name:
            return href("/debug/certs")
        case kinds.SETTINGS.name:
            return href("/debug/config")
        case kinds.TAP.name:
            return href("/debug/topology", {"service": path})
        case kinds.REJECTION.name | kinds.ADMISSION.name:
            return (
                href("/debug/proxy/show", {"proxy": path}) if path.count(".") == 2 else href("/debug/proxy")
            )
        case _:
            return href("/debug/policies", {"object": key})


def origin(shown: str) -> Markup:
    """Return where something comes from: a place in a file or cluster as it is, a source as a link to it."""
    named, _, place = shown.partition(" ")
    return (
        name(shown) if ":" in named or "resourceVersion" in place or named == "no" else source(named, shown)
    )


def service(path: str, shown: str = "") -> Markup:
    """Return a link to a Service, by its namespace and name."""
    return mesh_object(f"Service {path}", shown or path)


def identity(shown: str) -> Markup:
    """Return a link to whom an identity may call."""
    return link(shown, object_address(f"{kinds.SERVICE_ACCOUNT} {shown}"))


def certificates(common_name: str, shown: str) -> Markup:
    """Return a link to the certificates of a proxy."""
    return link(shown, href("/debug/certs", anchor=common_name))


def source(named: str, shown: str = "") -> Markup:
    """Return a link to a source."""
    return link(shown or named, href("/debug/sources", anchor=named))


def resource(of: str, type_word: str, named: str) -> Markup:
    """Return a link to what a proxy's resource was made from, and its pushes."""
    return link(named, href("/debug/xds", {"proxy": of, "resource": f"{type_word}/{named}"}))


def in_sentence(sentence: str, known: Mapping[str, str] | None = None) -> Markup:
    """Return a sentence in which objects (`TrafficTarget shop/buyers`) lead to their pages.

    So does a proxy with which it begins. `known` are addresses of further names that it may hold.
    """
    further = dict(known or {})
    if begins := _PROXY.match(sentence):
        further[begins[0]] = href("/debug/proxy/show", {"proxy": begins[0]})
    pattern = _either(further)
    parts: list[Markup] = []
    end = 0
    for found in pattern.finditer(sentence):
        parts.append(name(sentence[end : found.start()]))
        parts.append(link(found[0], further.get(found[0]) or object_address(found[0])))
        end = found.end()
    return Markup("".join((*parts, name(sentence[end:]))))


def _either(further: Iterable[str]) -> re.Pattern[str]:
    names = sorted(filter(None, further), key=len, reverse=True)
    if not names:
        return _OBJECT
    return re.compile(rf"{_OBJECT.pattern}|(?<![\w/.-])(?:{'|'.join(map(re.escape, names))})(?![\w/-])")
