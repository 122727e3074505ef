"""Links from names to the pages about the named objects.

For example, `TrafficTarget shop/buyers` links to `/debug/policies?object=TrafficTarget+shop%2Fbuyers`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, urlencode

from meshwright.admin.html.markup import Markup, name, tag
from meshwright.mesh import kinds
from meshwright.mesh.kinds import Kind

# Internal kinds such as `certificate` begin with a lower-case letter, and are not objects of users.
_KINDS: Final = sorted(
    {var.name for var in vars(kinds).values() if isinstance(var, Kind) and var.name[:1].isupper()}
)
_OBJECT: Final = re.compile(rf"\b(?:{'|'.join(_KINDS)})(?:\.[a-z0-9.-]+)? [a-z0-9.-]+/[\w.:-]*\w")

# <uuid>.<service>.<namespace>, followed by a word: problems about a proxy begin like this.
_PROXY: Final = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+){2}(?= [a-z])")


def href(path: str, query: Mapping[str, str] | None = None, anchor: str = "") -> str:
    """Return the address of a page on this server, with query and anchor."""
    return path + (f"?{urlencode(query)}" if query else "") + (f"#{quote(anchor, safe='')}" if anchor else "")


def link(shown: object, to: str) -> Markup:
    """Return a link."""
    return tag("a", name(shown), href=to)


def proxy(named: str, shown: str = "") -> Markup:
    """Return a link to the description of one proxy's configuration."""
    return link(shown or named, href("/debug/proxy/show", {"proxy": named}))


def mesh_object(key: str, shown: str = "") -> Markup:
    """Return a link to the page of a mesh object by kind and name, for example `Service shop/store`."""
    return link(shown or key, object_address(key))


def object_address(key: str) -> str:
    """Return the address of an object's page.

    A service account links to the requests it may send. Other inputs have addresses too, for example
    `certificate shop/store`.
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
                # A proxy name has two dots; other rejections concern several proxies.
                href("/debug/proxy/show", {"proxy": path}) if path.count(".") == 2 else href("/debug/proxy")
            )
        case _:
            return href("/debug/policies", {"object": key})


def origin(shown: str) -> Markup:
    """Return an origin: a place in a file or cluster as text, a source as a link."""
    named, _, place = shown.partition(" ")
    return (
        name(shown) if ":" in named or "resourceVersion" in place or named == "no" else source(named, shown)
    )


def service(path: str, shown: str = "") -> Markup:
    """Return a link to a Service by namespace and name."""
    return mesh_object(f"Service {path}", shown or path)


def identity(shown: str) -> Markup:
    """Return a link to the services an identity may call."""
    return link(shown, object_address(f"{kinds.SERVICE_ACCOUNT} {shown}"))


def certificates(common_name: str, shown: str) -> Markup:
    """Return a link to the certificates of a proxy."""
    return link(shown, href("/debug/certs", anchor=common_name))


def source(named: str, shown: str = "") -> Markup:
    """Return a link to a source on the page Sources."""
    return link(shown or named, href("/debug/sources", anchor=named))


def resource(proxy: str, type_word: str, named: str) -> Markup:
    """Return a link to the inputs and pushes of a proxy's resource."""
    return link(named, href("/debug/xds", {"proxy": proxy, "resource": f"{type_word}/{named}"}))


def in_sentence(sentence: str, known: Mapping[str, str] | None = None) -> Markup:
    """Return a sentence in which object names such as `TrafficTarget shop/buyers` are links.

    A proxy name at the beginning of the sentence becomes a link too. `known` has addresses of further names.
    """
    further = dict(known or {})
    if begins := _PROXY.match(sentence):
        further[begins[0]] = href("/debug/proxy/show", {"proxy": begins[0]})
    pattern = _either(further)
    parts: list[Markup] = []
    end = 0
    for match in pattern.finditer(sentence):
        parts.append(name(sentence[end : match.start()]))
        parts.append(link(match[0], further.get(match[0]) or object_address(match[0])))
        end = match.end()
    return Markup("".join((*parts, name(sentence[end:]))))


def _either(further: Iterable[str]) -> re.Pattern[str]:
    # Longest first, because a regular expression takes the first alternative that matches.
    names = sorted(filter(None, further), key=len, reverse=True)
    if not names:
        return _OBJECT
    return re.compile(rf"{_OBJECT.pattern}|(?<![\w/.-])(?:{'|'.join(map(re.escape, names))})(?![\w/-])")
