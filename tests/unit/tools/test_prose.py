"""Tests of the measures of the project's English, and of their record."""

import pytest

from tools.prose import EXAMPLES, OPENINGS, QUESTION, Figure, failures, figures, read_terms, recorded
from tools.prose_text import ROOT, Text, areas, package_names, packages


def _text(words: str, *, read_by_users: bool = False) -> Text:
    return Text([words], read_by_users)


def _rate(words: str, measure: object) -> float:
    return next(figure.rate for figure in figures(_text(words)) if figure.measure is measure)


def test_words_are_counted_whole_and_outside_code() -> None:
    """Case does not matter; code in backticks and fences is left out."""
    text = _text("What `what` is whatever.\n\n```\nwhat what\n```\n")
    assert (text.words, text.count("what"), text.count("is what")) == (3, 1, 0)
    assert _rate("who " * 3 + "word " * 97, QUESTION) == 30
    assert _rate("For example, e.g. this " + "word " * 95, EXAMPLES) == 20


@pytest.mark.parametrize(
    ("count", "recorded_rate", "keeps"),
    [
        (3, None, True),
        (4, None, False),
        (30, 30.0, True),
        (31, 30.0, True),
        (32, 30.0, False),
        (3, 1.0, True),
    ],
)
def test_figure_must_meet_goal_or_record(count: int, recorded_rate: float | None, keeps: bool) -> None:
    """The goal is at most 3 question words in 1000 words; a worse record may be exceeded by 2 %."""
    assert Figure(QUESTION, count, 1000).keeps(recorded_rate) is keeps


def test_lower_bound_fails_below_it() -> None:
    """The goal is two examples in 1000 words; until it is met, a lower record is the limit."""
    assert [Figure(EXAMPLES, count, 1000).keeps(None) for count in (1, 2)] == [False, True]
    assert [Figure(EXAMPLES, count, 1000).keeps(1.0) for count in (0, 1)] == [False, True]


def test_worse_text_fails_with_its_name_and_figures() -> None:
    """The message has the text, the measure, the figure, the record and the goal."""
    worse = {"catalog": _text("what " * 10 + "for example " * 45)}
    record = {"catalog": {QUESTION.name: 50.0}}
    assert list(failures(worse, record, {})) == [
        "catalog: what, who, whom, whose: 100, was 50; the goal is at most 3"
    ]


def test_unwanted_terms_are_counted_where_users_read() -> None:
    """Docstrings may have them, and earlier occurrences may stay."""
    terms = read_terms("# a comment\n\nin vain = without effect\n")
    words = "in vain " + "for example " * 10
    texts = {"docs": _text(words, read_by_users=True), "catalog": _text(words)}
    assert list(failures(texts, {}, terms)) == [
        "docs: 'in vain' occurs 1 times, at most 0 may; better: without effect"
    ]
    assert list(failures(texts, {"docs": {"in vain": 1}}, terms)) == []


def test_record_takes_only_better_figures() -> None:
    """A worse figure leaves the record unchanged, and records of removed texts are dropped."""
    before = {"docs": {QUESTION.name: 20.0, EXAMPLES.name: 500.0}, "gone": {QUESTION.name: 1.0}}
    new = recorded({"docs": _text("who " + "word " * 99)}, before, {})
    assert (set(new), new["docs"][QUESTION.name], new["docs"][EXAMPLES.name]) == ({"docs"}, 10.0, 500.0)


def test_every_package_is_measured() -> None:
    """Subpackages of meshwright have figures of their own."""
    assert {"catalog", "certs", "demo", "xds", "meshwright/delivery"} <= {*package_names()}
    assert "meshwright" not in package_names()


def test_package_is_measured_by_its_docstrings_and_lines() -> None:
    """All its modules count, also those in folders."""
    (text,) = packages(["xds"]).values()
    assert text.modules == len(list((ROOT / "xds").rglob("*.py")))
    assert text.words > 100
    assert OPENINGS in {figure.measure for figure in figures(text)}


def test_docs_help_and_messages_are_measured() -> None:
    """The messages here are those of one package, because to read all modules takes seconds."""
    texts = areas(["xds"])
    assert set(texts) == {"docs", "help", "messages"}
    assert all(text.words > 100 for text in texts.values())
    assert "Envoy" in " ".join(texts["help"].parts)
