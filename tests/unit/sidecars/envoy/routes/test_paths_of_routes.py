"""Tests of paths in routes: how requests fit, and the new paths of rewrites, carried out by RE2 here."""

import pytest
import re2

from meshwright.mesh.gateway.filters import NewPath, PathForm
from meshwright.mesh.matching import Exact, GrpcMethod, Prefix, Regex, RequestMatch
from meshwright.sidecars.envoy.routes.matches import matched_prefix, route_match
from meshwright.sidecars.envoy.routes.rewrites import path_change
from meshwright.sidecars.envoy.rules.matching import path_regex
from protos.envoy.config.route.v3 import route_components_pb2

PATHS = (
    "/",
    "/foo",
    "/foo/",
    "/foo/x",
    "/foobar",
    "/FOO",
    "/shop.Cart/Add",
    "/shop.Cart/Addx",
    "/shop/x/Add",
)
Path = Exact | Prefix | Regex | GrpcMethod


def fits(match: route_components_pb2.RouteMatch, path: str) -> bool:
    """Return whether Envoy finds that a path fits, by the rules of its documentation."""
    match match.WhichOneof("path_specifier"):
        case "prefix":
            return path.startswith(match.prefix)
        case "path":
            return path == match.path
        case "path_separated_prefix":
            return f"{path}/".startswith(f"{match.path_separated_prefix}/")
        case "safe_regex":
            return re2.fullmatch(match.safe_regex.regex, path) is not None
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (Exact("/foo"), ["/foo"]),
        (Prefix("/"), list(PATHS)),
        (Prefix("/foo"), ["/foo", "/foo/", "/foo/x"]),
        (Regex("/foo/?"), ["/foo", "/foo/"]),
        (GrpcMethod("shop.Cart", "Add"), ["/shop.Cart/Add"]),
        (GrpcMethod("shop.Cart"), ["/shop.Cart/Add", "/shop.Cart/Addx"]),
        (GrpcMethod(None, "Add"), ["/shop.Cart/Add"]),
        (GrpcMethod("shop[.]C.*", "Add|Foo", is_regex=True), ["/shop.Cart/Add"]),
        (GrpcMethod(method="A.*", is_regex=True), ["/shop.Cart/Add", "/shop.Cart/Addx"]),
    ],
    ids=repr,
)
def test_path_fits_the_same_requests_in_a_route_and_as_an_expression(path: Path, expected: list[str]) -> None:
    """A route has the form that Envoy compares fastest, and further paths of an entry are expressions."""
    match = route_match((RequestMatch(path),))
    assert [text for text in PATHS if fits(match, text)] == expected
    assert [text for text in PATHS if re2.fullmatch(path_regex(path), text)] == expected


def test_second_path_of_an_entry_is_a_header() -> None:
    """A route has one path, and the query does not belong to the others."""
    match = route_match((RequestMatch(Prefix("/foo")), RequestMatch(Exact("/foo/x"))))
    assert match.path_separated_prefix == "/foo"
    (header,) = match.headers
    assert header.name == ":path"
    assert re2.fullmatch(header.string_match.safe_regex.regex, "/foo/x?q=1") is not None
    assert re2.fullmatch(header.string_match.safe_regex.regex, "/foo/y") is None


def test_only_grpc_matches_look_at_the_content_type() -> None:
    """Every gRPC call fits a match without a method; other requests do not."""
    assert route_match((RequestMatch(grpc=True),)).HasField("grpc")
    assert not route_match((RequestMatch(),)).HasField("grpc")


def rewritten(path: str, new: NewPath, matched: str) -> str:
    """Return the path that Envoy makes of a path with this prefix."""
    change = path_change(new, matched)
    if change.substitution is not None:
        pattern = change.substitution.pattern.regex
        return str(re2.sub(pattern, change.substitution.substitution, path, count=1))
    return path if change.prefix is None else change.prefix + path.removeprefix(matched)


@pytest.mark.parametrize(
    ("path", "new", "expected"),
    [
        ("/foo/bar", "/xyz", "/xyz/bar"),
        ("/foo/bar", "/xyz/", "/xyz/bar"),
        ("/foo/", "/xyz", "/xyz/"),
        ("/foo", "/xyz", "/xyz"),
        ("/foo", "/", "/"),
        ("/foo/", "/", "/"),
        ("/foo/bar", "", "/bar"),
        ("/foo/bar", "/", "/bar"),
    ],
)
def test_prefix_is_replaced_as_the_gateway_api_says(path: str, new: str, expected: str) -> None:
    """The table in the documentation of ReplacePrefixMatch: slashes are neither lost nor doubled."""
    assert rewritten(path, NewPath(PathForm.PREFIX, new), "/foo") == expected


@pytest.mark.parametrize(
    ("new", "expected"), [("/xyz", "/xyz/test"), ("/xyz/", "/xyz/test"), ("/", "/test"), ("", "/test")]
)
def test_prefix_of_all_paths_is_put_before_them(new: str, expected: str) -> None:
    """Without a slash at its end the new prefix would join with the first segment."""
    assert rewritten("/test", NewPath(PathForm.PREFIX, new), "/") == expected


def test_prefix_and_path_are_no_expressions() -> None:
    """A dot in a prefix fits a dot only, and a backslash in a new path is one."""
    assert rewritten("/f.o/x", NewPath(PathForm.PREFIX, "/"), "/f.o") == "/x"
    assert rewritten("/fao/x", NewPath(PathForm.PREFIX, "/"), "/f.o") == "/fao/x"
    assert rewritten("/a/b", NewPath(PathForm.FULL, r"/\1"), "/") == r"/\1"
    assert rewritten("/a/b", NewPath(PathForm.FULL, ""), "/") == "/"


def test_prefix_of_an_entry_is_that_of_its_prefix_match() -> None:
    """An entry without a prefix is for all paths, so a rewrite puts its prefix before them."""
    assert matched_prefix((RequestMatch(Prefix("/foo")),)) == "/foo"
    assert matched_prefix((RequestMatch(Exact("/foo")),)) == "/"
    assert matched_prefix(()) == "/"
