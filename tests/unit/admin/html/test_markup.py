"""Elements and text: escaped, and wrapped only where the parts of a name meet."""

import pytest

from meshwright.admin.html import links
from meshwright.admin.html.markup import code, detail, listed, name, tag, text


def test_text_and_attributes_cannot_be_markup() -> None:
    """Neither ends the element or the attribute that it stands in."""
    assert text("<b>&'\"") == "&lt;b&gt;&amp;&#x27;&quot;"
    assert tag("a", text("x"), href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;">x</a>'
    assert code("</code>") == "<code>&lt;/code&gt;</code>"


def test_elements_are_what_they_are_told() -> None:
    """Names of attributes are HTML's; what is None or False is not there."""
    assert tag("p", text("a"), class_="b", aria_label="c", id=None, hidden=False, required=True) == (
        '<p class="b" aria-label="c" required>a</p>'
    )
    assert tag("input", name="x") == '<input name="x">'
    assert listed([text("a"), text("b")]) == "<ul><li>a</li><li>b</li></ul>"
    assert detail(text("s"), text("b")) == "<details><summary>s</summary>b</details>"


def test_long_names_may_be_wrapped_between_their_parts() -> None:
    """Short ones and words never; the escape of a character is never torn."""
    assert name("shop/store-1") == "shop/store-1"
    assert name("rds-outbound.shop/shop|80") == ("rds-<wbr>outbound.<wbr>shop/<wbr>shop|<wbr>80")
    assert name("0123456789abcdef0123456789abcdef") == "0123456789abcdef0123456789abcdef"
    assert name("a/<b>&<b>&<b>&<b>&<b>") == (
        "a/<wbr>&lt;b&gt;&amp;" + "<wbr>&lt;b&gt;&amp;" * 3 + "<wbr>&lt;b&gt;"
    )


def test_objects_and_proxies_in_a_sentence_lead_to_their_pages() -> None:
    """So do names that are given; others are left alone, and what is escaped stays so."""
    assert links.in_sentence("rejected: TrafficTarget shop/buyers (mesh.yaml:3)") == (
        'rejected: <a href="/debug/policies?object=TrafficTarget+shop%2Fbuyers">'
        "TrafficTarget shop/buyers</a> (mesh.yaml:3)"
    )
    assert links.in_sentence("u.store.shop is away") == (
        '<a href="/debug/proxy/show?proxy=u.store.shop">u.store.shop</a> is away'
    )
    assert links.in_sentence("ServiceAccount a/b may") == (
        '<a href="/debug/access?source=a%2Fb">ServiceAccount a/b</a> may'
    )
    assert links.in_sentence("to a/b, not a/bc", {"a/b": "/x"}) == 'to <a href="/x">a/b</a>, not a/bc'
    for plain in ("the Service of somebody", "mesh.yaml is empty", "MyService shop/x"):
        assert links.in_sentence(plain) == plain
    assert links.in_sentence("<i> Service a/b") == (
        '&lt;i&gt; <a href="/debug/policies?object=Service+a%2Fb">Service a/b</a>'
    )


@pytest.mark.parametrize(
    ("key", "address"),
    [
        ("TrafficTarget shop/a", "/debug/policies?object=TrafficTarget+shop%2Fa"),
        ("Namespace shop", "/debug/policies?object=Namespace+shop"),
        ("ServiceAccount shop/a", "/debug/access?source=shop%2Fa"),
        ("certificate shop/a", "/debug/certs#shop%2Fa"),
        ("trust bundle cluster.local", "/debug/certs"),
        ("settings settings", "/debug/config"),
        ("rejection u.store.shop", "/debug/proxy/show?proxy=u.store.shop"),
        ("admission proxies", "/debug/proxy"),
        ("tap shop/store", "/debug/topology?service=shop%2Fstore"),
    ],
)
def test_what_a_configuration_is_made_from_has_a_page(key: str, address: str) -> None:
    """Objects and what is none."""
    assert links.object_address(key) == address


def test_where_something_comes_from_is_a_place_or_a_source() -> None:
    """A source leads to what is said of it."""
    for place in ("mesh.yaml:3 (document 1)", "main (resourceVersion 7)", "no source"):
        assert links.origin(place) == place
    assert links.origin("dns (db.example)") == '<a href="/debug/sources#dns">dns (db.example)</a>'
