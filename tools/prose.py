"""Measure how plain the project's English is: `python -m tools.prose`.

docs/extend/style.md has the rules. A few of them can be counted, for example how often a sentence has "who"
or "what" where a noun would do. The program counts them per package (docstrings and comments) and per area
that users read (docs, help, messages), and compares each figure with its record in `tools/prose.json`.

A figure that is worse than its record fails `make lint`, unless the figure still meets its goal. `--record`
writes better figures into the record, and never worse ones. `--table` prints all figures.
"""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tools.prose_text import ROOT, Text, areas, package_names, packages

RECORD: Final = ROOT / "tools" / "prose.json"
TERMS: Final = ROOT / "tools" / "prose_terms.txt"
Record = dict[str, dict[str, float]]
SLACK: Final = 1.02
"""Factor by which a figure may be worse than its record; the record itself never gets worse."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a text with a goal: an upper bound, or a lower bound with `at_least`.

    `words` are counted as whole words, per 1000 words of the text.
    """

    name: str
    goal: float
    words: tuple[str, ...] = ()
    at_least: bool = False


def _forms(*stems: str) -> tuple[str, ...]:
    return tuple(stem for line in stems for stem in line.split())


QUESTION: Final = Measure("what, who, whom, whose", 3, ("what", "who", "whom", "whose"))
PRIVATE_VERBS: Final = Measure(
    "told, said, say, stand, come",
    1.5,
    _forms(
        "tell tells telling told",
        "say says saying said",
        "stand stands standing stood",
        "come comes coming came",
    ),
)
PRONOUNS: Final = Measure("it, its, those, that", 25, ("it", "its", "those", "that"))
NEGATIONS: Final = Measure("no, none, nobody, nothing, nor", 6, ("no", "none", "nobody", "nothing", "nor"))
EXAMPLES: Final = Measure("for example", 2, ("for example", "for instance", "e.g."), at_least=True)
COMMENTS: Final = Measure("comments per 100 lines", 1.5, at_least=True)
OPENINGS: Final = Measure("modules that begin with a question word", 0)
COUNTED: Final = (QUESTION, PRIVATE_VERBS, PRONOUNS, NEGATIONS, EXAMPLES)
MEASURES: Final = (*COUNTED, COMMENTS, OPENINGS)


@dataclass(frozen=True, slots=True)
class Figure:
    """Value of a measure in one text: `count` among `among` words or lines."""

    measure: Measure
    count: int
    among: int

    @property
    def rate(self) -> float:
        """Return the figure in the unit of the record: per 1000 words, per 100 lines, or the count itself."""
        if self.measure is OPENINGS:
            return self.count
        return round((100 if self.measure is COMMENTS else 1000) * self.count / max(self.among, 1), 2)

    def keeps(self, recorded: float | None) -> bool:
        """Return whether the figure meets its goal, or is at least as good as its record (None: no record).

        A fraction of a word is rounded in favour of the text, because short texts have few words. An upper
        bound may be exceeded by SLACK, because a shorter sentence raises the rate of all remaining words.
        """
        at_least, goal = self.measure.at_least, self.measure.goal
        record = goal if recorded is None else recorded
        if self.measure is OPENINGS:
            return self.count <= max(goal, record)
        slack = 1 if recorded is None else SLACK
        bound = min(goal, record) if at_least else max(goal, record * slack)
        allowed = bound * self.among / (100 if self.measure is COMMENTS else 1000)
        return self.count >= math.floor(allowed) if at_least else self.count <= math.ceil(allowed)


def figures(text: Text) -> Iterator[Figure]:
    """Yield the figure of each measure of a text; comments and modules are counted only for code."""
    for measure in COUNTED:
        yield Figure(measure, sum(text.count(word) for word in measure.words), text.words)
    if text.lines:
        yield Figure(COMMENTS, text.comments, text.lines)
        yield Figure(OPENINGS, text.openings, text.modules)


def unwanted_terms(text: Text, terms: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield each unwanted term that a text contains, with the number of occurrences."""
    for term in terms:
        if count := text.count(term):
            yield term, count


def read_terms(lines: str) -> dict[str, str]:
    """Parse the file of terms: one `term = better` per line; empty lines and comment lines are skipped."""
    pairs = (line.partition("=") for line in lines.splitlines() if line.strip() and not line.startswith("#"))
    return {term.strip(): better.strip() for term, _, better in pairs}


def failures(texts: Mapping[str, Text], record: Record, terms: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each figure or unwanted term that is worse than both its record and its goal."""
    for name, text in texts.items():
        known = record.get(name, {})
        for figure in figures(text):
            measure = figure.measure
            recorded = known.get(measure.name)
            if not figure.keeps(recorded):
                at = "at least" if measure.at_least else "at most"
                was = "has no record" if recorded is None else f"was {recorded:g}"
                yield f"{name}: {measure.name}: {figure.rate:g}, {was}; the goal is {at} {measure.goal:g}"
        for term, count in unwanted_terms(text, terms) if text.read_by_users else ():
            if count > (allowed := known.get(term, 0)):
                better = f"; better: {terms[term]}" if terms[term] else ""
                yield f"{name}: {term!r} occurs {count} times, at most {allowed:g} may{better}"


def recorded(texts: Mapping[str, Text], record: Record, terms: Mapping[str, str]) -> Record:
    """Return the record with all improved figures, and without texts that no longer exist."""
    new: Record = {}
    for name, text in texts.items():
        known = record.get(name, {})
        new[name] = {}
        for figure in figures(text):
            best = max if figure.measure.at_least else min
            old = known.get(figure.measure.name, figure.rate)
            new[name][figure.measure.name] = best(old, figure.rate)
        for term, count in unwanted_terms(text, terms) if text.read_by_users else ():
            new[name][term] = min(known.get(term, count), count)
    return new


def table(texts: Mapping[str, Text]) -> Iterator[str]:
    """Yield the lines of a Markdown table with all figures, one line per text."""
    yield "| text | words | " + " | ".join(measure.name for measure in MEASURES) + " |"
    yield "|---|" + "---|" * (len(MEASURES) + 1)
    for name, text in texts.items():
        result = {figure.measure: f"{figure.rate:.1f}" for figure in figures(text)}
        yield f"| {name} | {text.words} | " + " | ".join(result.get(item, "") for item in MEASURES) + " |"


def main(arguments: list[str]) -> int:
    """Compare the figures with the record and print all failures; return 1 if there are any, else 0."""
    texts = {**packages(package_names()), **areas()}
    terms = read_terms(TERMS.read_text("utf-8"))
    record: Record = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    if "--table" in arguments:
        print(*table(texts), sep="\n")
        return 0
    if "--record" in arguments:
        RECORD.write_text(
            json.dumps(recorded(texts, record, terms), indent=1, sort_keys=True) + "\n", "utf-8"
        )
        return 0
    result = list(failures(texts, record, terms))
    print(*result, sep="\n", end="\n" if result else "")
    if result:
        print("docs/extend/style.md has the rules; `python -m tools.prose --table` prints all figures")
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
