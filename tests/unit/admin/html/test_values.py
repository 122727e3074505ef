"""Tests of values, tables and forms in HTML."""

from meshwright.admin.html.forms import Field, Form, form
from meshwright.admin.html.tables import MOST, plain, table
from meshwright.admin.html.values import shown
from meshwright.admin.jsonable import Document

NONE = '<span class="none">&ndash;</span>'


def test_values_are_shown_by_their_type() -> None:
    """An empty value is a dash, a time is readable, and a mapping is a list of names and values."""
    assert shown(None) == shown("") == NONE
    assert (shown(True), shown(3), shown([]), shown({})) == ("yes", "3", "none", "none")
    assert shown("2026-01-02T03:04:05.600Z") == (
        '<time datetime="2026-01-02T03:04:05.600Z"><span>2026-01-02</span> <span>03:04:05 UTC</span></time>'
    )
    assert shown({"a_b": ["x", "<y>"]}) == "<dl><div><dt>a b</dt><dd>x, &lt;y&gt;</dd></div></dl>"
    assert shown([["x"], {}]) == "<ul><li>x</li><li>none</li></ul>"


def test_records_are_rows_of_one_table() -> None:
    """A list of records is one table with a column per name, in the order of first occurrence.

    Each cell has the name as a label for narrow screens.
    """
    assert shown([{"a": 1}, {"b": "<"}]) == (
        '<div class="table"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>'
        "<tbody>"
        f'<tr><td data-label="a"><div>1</div></td><td data-label="b"><div>{NONE}</div></td></tr>'
        f'<tr><td data-label="a"><div>{NONE}</div></td><td data-label="b"><div>&lt;</div></td></tr>'
        "</tbody></table></div>"
    )


def test_table_shows_fields_without_a_column_under_more() -> None:
    """A field without a column is shown under "more" in its row, so that no field is lost."""
    drawn = table([{"a": 1, "b": 2}], [plain("A", "a")], "none")
    assert "<summary>more</summary><dl><div><dt>b</dt><dd>2</dd></div></dl>" in drawn
    assert "Other fields" not in table([{"a": 1}], [plain("A", "a")], "none")


def test_empty_table_shows_the_given_sentence() -> None:
    """An empty table is replaced by the escaped sentence that was given for it."""
    assert table([], [plain("A", "a")], "Put <it> there.") == '<p class="empty">Put &lt;it&gt; there.</p>'


def test_long_table_is_cut_and_counts_the_other_rows() -> None:
    """A table shows at most `MOST` rows, and then the number of the others, which are in the page's JSON."""
    records: list[Document] = [{"a": number} for number in range(MOST + 2)]
    drawn = table(records, [plain("A", "a")], "")
    assert drawn.count("<tr") == MOST + 1
    assert drawn.endswith('<p class="empty">2 more rows: all are in the JSON of this page.</p>')


def test_first_of_several_rows_with_one_name_has_the_anchor() -> None:
    """Of rows with the same name only the first has the anchor, because an id must be unique in a page."""
    drawn = table([{"a": "x"}, {"a": "x"}], [plain("A", "a")], "", lambda item: str(item["a"]))
    assert drawn.count('id="x"') == 1
    assert drawn.index('id="x"') < drawn.index("<td")


def test_form_contains_the_values_of_the_query() -> None:
    """A form contains the escaped values of the query, and one more empty input for a repeatable field."""
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
