"""New paths of requests, for rewrites and redirects. Envoy keeps the query in all of them."""

import re
from dataclasses import dataclass

from meshwright.mesh.gateway.filters import NewPath, PathForm
from protos.envoy.type.matcher.v3 import regex_pb2

_Regex = regex_pb2.RegexMatchAndSubstitute
_WHOLE = "^.*$"


@dataclass(frozen=True, slots=True)
class PathChange:
    """A new path as Envoy makes it: another prefix, or a substitution; both None for the path as it is."""

    prefix: str | None = None
    substitution: _Regex | None = None


def whole_path(path: NewPath) -> str:
    """Return the new path of a full replacement; an empty one is `/`."""
    return path.path or "/"


def path_change(path: NewPath, matched: str) -> PathChange:
    """Return the change of a request's path, of which the prefix `matched` is known (`/` for any path)."""
    if path.form is PathForm.FULL:
        return PathChange(substitution=_substitution(_WHOLE, whole_path(path)))
    new = path.path.rstrip("/")
    if matched == "/":
        # Without the slash, `/test` would become `/xyztest`.
        return PathChange(prefix=f"{new}/") if new else PathChange()
    if not new:
        # A prefix `/` would make `//bar` of `/foo/bar`, and an empty one changes nothing.
        return PathChange(substitution=_substitution(f"^{re.escape(matched)}(?:/|$)", "/"))
    return PathChange(prefix=new)


def _substitution(regex: str, text: str) -> _Regex:
    """Return a substitution; a backslash would refer to a group."""
    pattern = regex_pb2.RegexMatcher(regex=regex)
    return _Regex(pattern=pattern, substitution=text.replace("\\", "\\\\"))
