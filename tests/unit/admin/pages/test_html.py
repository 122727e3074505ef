"""Pages for people are escaped."""

from admin.pages.html import page


def test_what_is_shown_cannot_be_markup() -> None:
    """Keys, values and links are escaped."""
    text = page("<t>", {"<k>": ["<v>", {"<a>": "<b>"}]}, ["/debug?x=<y>"])
    for raw in ("<t>", "<k>", "<v>", "<a>", "<b>", "<y>"):
        assert raw not in text


def test_records_become_rows_of_one_table() -> None:
    """A list of mappings has one column per name, in the order of first sight."""
    text = page("t", [{"a": 1, "b": None}, {"b": True, "c": []}], [])
    assert (
        "<table><tr><th>a</th><th>b</th><th>c</th></tr>"
        "<tr><td><code>1</code></td><td>&ndash;</td><td>&ndash;</td></tr>"
        "<tr><td>&ndash;</td><td>yes</td><td>none</td></tr></table>" in text
    )
