"""Tests of HTML elements, text and links: escaping, and line breaks within long names."""

import pytest

from meshwright.admin.html import links
from meshwright.admin.html.markup import code, detail, listed, name, tag, text


def test_text_and_attributes_are_escaped() -> None:
    """Neither text nor an attribute can end its element, because both are escaped."""
    assert text("<b>&'\"") == "&lt;b&gt;&amp;&#x27;&quot;"
    assert tag("a", text("x"), href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;">x</a>'
    assert code("</code>") == "<code>&lt;/code&gt;</code>"


def test_tag_renders_names_and_values_of_attributes() -> None:
    """Python names of attributes become HTML names, and attributes that are None or False are omitted."""
    assert tag("p", text("a"), class_="b", aria_label="c", id=None, hidden=False, required=True) == (
        '<p class="b" aria-label="c" required>a</p>'
    )
    assert tag("input", name="x") == '<input name="x">'
    assert listed([text("a"), text("b")]) == "<ul><li>a</li><li>b</li></ul>"
    assert detail(text("s"), text("b")) == "<details><summary>s</summary>b</details>"


def test_long_names_can_wrap_only_between_their_parts() -> None:
    """Only long names get line breaks, after the separators of their parts.

    An escaped character is never split.
    """
    assert name("shop/store-1") == "shop/store-1"
    assert name("rds-outbound.shop/shop|80") == ("rds-<wbr>outbound.<wbr>shop/<wbr>shop|<wbr>80")
    assert name("0123456789abcdef0123456789abcdef") == "0123456789abcdef0123456789abcdef"
    assert name("a/<b>&<b>&<b>&<b>&<b>") == (
        "a/<wbr>&lt;b&gt;&amp;" + "<wbr>&lt;b&gt;&amp;" * 3 + "<wbr>&lt;b&gt;"
    )


def test_objects_and_proxies_in_a_sentence_are_links() -> None:
    """Objects, proxies and given names in a sentence become links; all other text is only escaped."""
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
def test_key_of_an_input_leads_to_its_page(key: str, address: str) -> None:
    """Each kind of input of a configuration, an object or another key, has the address of a page."""
    assert links.object_address(key) == address


def test_origin_is_a_place_or_a_link_to_its_source() -> None:
    """A file or a cluster's object is shown as text.

    The DNS source is a link to its entry on the page of sources.
    """
    for place in ("mesh.yaml:3 (document 1)", "main (resourceVersion 7)", "no source"):
        assert links.origin(place) == place
    assert links.origin("dns (db.example)") == '<a href="/debug/sources#dns">dns (db.example)</a>'
