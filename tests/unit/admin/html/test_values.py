"""Values of which nothing is known, tables and forms."""

from meshwright.admin.html.forms import Field, Form, form
from meshwright.admin.html.tables import MOST, plain, table
from meshwright.admin.html.values import shown
from meshwright.admin.jsonable import Document

NONE = '<span class="none">&ndash;</span>'


def test_values_are_shown_as_they_are() -> None:
    """Nothing is a dash, a moment can be read, names and values stand in pairs."""
    assert shown(None) == shown("") == NONE
    assert (shown(True), shown(3), shown([]), shown({})) == ("yes", "3", "none", "none")
    assert shown("2026-01-02T03:04:05.600Z") == (
        '<time datetime="2026-01-02T03:04:05.600Z"><span>2026-01-02</span> <span>03:04:05 UTC</span></time>'
    )
    assert shown({"a_b": ["x", "<y>"]}) == "<dl><div><dt>a b</dt><dd>x, &lt;y&gt;</dd></div></dl>"
    assert shown([["x"], {}]) == "<ul><li>x</li><li>none</li></ul>"


def test_records_are_rows_of_one_table() -> None:
    """One column for each name, in the order of first sight; each cell has its name, for narrow screens."""
    assert shown([{"a": 1}, {"b": "<"}]) == (
        '<div class="table"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>'
        "<tbody>"
        f'<tr><td data-label="a"><div>1</div></td><td data-label="b"><div>{NONE}</div></td></tr>'
        f'<tr><td data-label="a"><div>{NONE}</div></td><td data-label="b"><div>&lt;</div></td></tr>'
        "</tbody></table></div>"
    )


def test_a_table_loses_nothing_of_a_record() -> None:
    """What has no column is where it is opened."""
    drawn = table([{"a": 1, "b": 2}], [plain("A", "a")], "none")
    assert "<summary>more</summary><dl><div><dt>b</dt><dd>2</dd></div></dl>" in drawn
    assert "All else" not in table([{"a": 1}], [plain("A", "a")], "none")


def test_an_empty_table_says_what_would_fill_it() -> None:
    """In a sentence."""
    assert table([], [plain("A", "a")], "Put <it> there.") == '<p class="empty">Put &lt;it&gt; there.</p>'


def test_a_table_of_a_large_mesh_ends() -> None:
    """With how many rows there are more, and where."""
    records: list[Document] = [{"a": number} for number in range(MOST + 2)]
    drawn = table(records, [plain("A", "a")], "")
    assert drawn.count("<tr") == MOST + 1
    assert drawn.endswith('<p class="empty">2 more rows: all are in the JSON of this page.</p>')


def test_of_rows_of_one_name_the_first_has_the_anchor() -> None:
    """An address leads to one place."""
    drawn = table([{"a": "x"}, {"a": "x"}], [plain("A", "a")], "", lambda each: str(each["a"]))
    assert drawn.count('id="x"') == 1
    assert drawn.index('id="x"') < drawn.index("<td")


def test_a_form_is_filled_in_with_what_was_asked() -> None:
    """Escaped; of what may be given several times there is one more."""
    asks = Form(
        (Field("a", "A", "e"), Field("h", "H", several=True), Field("s", "S", choices=("x", "y"))), "Go"
    )
    assert form(asks, "/p", [("h", '"'), ("s", "y")]) == (
        '<form action="/p" method="get"><label>A<input name="a" placeholder="e"></label>'
        '<label>H<input name="h" value="&quot;" placeholder=""></label>'
        '<label>H<input name="h" placeholder=""></label>'
        '<label>S<select name="s"><option value="">all</option><option value="x">x</option>'
        '<option value="y" selected>y</option></select></label><button type="submit">Go</button></form>'
    )
