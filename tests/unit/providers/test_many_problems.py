"""Tests of files with very many problems: some hundreds are shown, and the rest is counted."""

from collections import Counter

import pytest

from catalog.lint.problems import problems
from catalog.store.view import MeshSettings, View
from meshwright.mesh.origins import FromSource, InFile
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.problems.tally import MOST
from meshwright.providers.directory.manifests import Manifests
from meshwright.providers.text.documents import documents
from meshwright.specs.reader import read
from tests.meshes.texts import account, joined, manifest

COUNT = 700
REST = COUNT - MOST
LIST = "apiVersion: v1\nkind: List\nitems:\n"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n"
KEYS = [f"x{item}: 1\n" for item in range(COUNT)]
TEXTS = {
    "empty items of a list": (LIST + "- {}\n" * COUNT, {"MW1002": 2 * COUNT}),
    "items that are no mappings": (LIST + "- secret\n" * COUNT, {"MW1001": COUNT}),
    "items of an unknown kind": (
        LIST
        + "".join(
            f"- {{apiVersion: v1, kind: Sevrice, metadata: {{name: a{each}}}}}\n" for each in range(COUNT)
        ),
        {"MW1003": COUNT},
    ),
    "documents without a kind": ("---\na: 1\n" * COUNT, {"MW1002": 2 * COUNT}),
    "documents that are no YAML": ("---\n@\n" * COUNT, {"MW1101": COUNT}),
    "keys that stand twice": ("a: 1\n" * (COUNT + 1), {"MW1102": COUNT}),
    "merges of what is no mapping": ("<<: 1\n" * COUNT, {"MW1101": COUNT}),
    "tags": ("- !x 1\n" * COUNT, {"MW1101": COUNT}),
    "fields that no Service has": (
        "apiVersion: split.smi-spec.io/v1alpha4\nkind: TrafficSplit\nmetadata: {name: a}\n"
        "spec: {service: a, backends: [{service: b, weight: 1}]}\n" + "".join(KEYS),
        {"MW1012": COUNT},
    ),
    "elements of a wrong type": (
        manifest("Service", "a", "ports: [" + "1," * COUNT + "]"),
        {"MW1010": COUNT},
    ),
    "fields of metadata": (NAMESPACE + "".join(f"  {object_key}" for object_key in KEYS), {"MW1027": COUNT}),
    "labels of ours": (
        NAMESPACE + "  labels:\n" + "".join(f"    meshwright.dev/{object_key}" for object_key in KEYS),
        {"MW1025": COUNT, "MW1010": COUNT},
    ),
    "kinds that are not read": (
        LIST
        + "".join(f"- {{apiVersion: a/v1, kind: K{each}, metadata: {{name: a}}}}\n" for each in range(COUNT)),
        {"MW1031": COUNT},
    ),
}


def _count(problem: Problem) -> int:
    """Return the number of problems that one problem represents."""
    _, marked, rest = problem.expected.partition("and ")
    number, more, _ = rest.partition(" more problems of this kind ")
    return int(number.replace(",", "")) if marked and more else 1


def _counts(result: tuple[Problem, ...]) -> dict[str, int]:
    """Return the number of problems for each code, including the counted rest."""
    counts = Counter[str]()
    for problem in result:
        counts[problem.code] += _count(problem)
    return dict(counts)


@pytest.mark.parametrize("name", TEXTS)
def test_file_with_very_many_problems_shows_some_and_counts_the_rest(name: str) -> None:
    """At most MOST problems of each code are shown, and the shown and counted ones add up."""
    text, expected = TEXTS[name]
    result = Manifests().apply("x.yaml", text).problems()
    assert len(result) <= (MOST + 1) * len(expected)
    assert _counts(result) == expected


def test_number_of_further_problems_is_reported_at_the_file() -> None:
    """The number has a thousands separator."""
    result = Manifests().apply("x.yaml", LIST + "- {}\n" * COUNT).problems()
    assert len(result) == MOST + 1
    (rest,) = (problem for problem in result if _count(problem) > 1)
    assert rest == Problem(
        code="MW1002",
        severity=Severity.ERROR,
        origin=InFile("x.yaml"),
        expected="and 1,200 more problems of this kind in this file",
    )


def test_valid_objects_in_a_file_with_many_problems_are_in_force() -> None:
    """Objects after the last shown problem are read like those before it."""
    text = joined(account("first"), LIST + "- {}\n" * COUNT, account("last"))
    assert [key.name for key in Manifests().apply("x.yaml", text).objects()] == ["first", "last"]


def test_number_of_further_problems_is_reported_for_a_single_document() -> None:
    """An object of a cluster is in no file, so the message names the document."""
    (document,) = documents(LIST + "- 1\n" * COUNT)
    *named, rest = read(document.value, FromSource("here")).problems
    assert [problem.field for problem in named] == [f"items[{number}]" for number in range(MOST)]
    assert rest.expected == f"and {REST:,} more problems of this kind in this document"


def test_duplicate_definitions_are_counted() -> None:
    """The duplicates may be in the same file or in another one."""
    count = MOST + 50
    names = [f"a{number}" for number in range(count)]
    workloads = joined(*(_workload(name, "10.0.0.1") for name in names))
    others = joined(*(_workload(name, "10.0.0.2") for name in names))
    for state in (
        Manifests().apply("x.yaml", joined(workloads, others)),
        Manifests().apply_all({"x.yaml": workloads, "y.yaml": others}),
        Manifests().apply("y.yaml", others).apply("x.yaml", workloads),
    ):
        assert len(state.problems()) == MOST + 1
        assert _counts(state.problems()) == {"MW1106": count}


def test_objects_with_their_last_good_form_are_counted() -> None:
    """A syntax error in a file of many objects is one problem, plus one warning for each object."""
    good = joined(*(account(f"a{number}") for number in range(COUNT)))
    state = Manifests().apply("x.yaml", good).apply("x.yaml", "{\n")
    assert len(state.objects()) == COUNT
    assert _counts(state.problems()) == {"MW1101": 1, "MW1107": COUNT}
    assert len(state.problems()) == MOST + 2


def test_problems_between_objects_are_counted() -> None:
    """Here the problems are the missing backends of a TrafficSplit."""
    backends = ",".join(f"{{service: b{number}, weight: 1}}" for number in range(COUNT))
    split = manifest("TrafficSplit", "s", f"service: a, backends: [{backends}]")
    result = problems(View.build(Manifests().apply("x.yaml", split).objects(), MeshSettings()))
    assert max(Counter(problem.code for problem in result).values()) == MOST + 1
    assert COUNT in _counts(result).values()


def _workload(name: str, address: str) -> str:
    return manifest("Workload", name, f"address: {address}, uuid: {name}, service: a, serviceAccount: a")
