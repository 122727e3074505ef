"""What can be said of an installation stands in three places, which say the same; and how it is said."""

import json
import re
from typing import Any

import jsonschema
import pytest

from deploy.overriding import merged, told
from deploy.rendering import chart, defaults, manifests
from deploy.template.tokens import TemplateError
from deploy.values import Values, ValuesError, checked
from tests.typed import ROOT
from tools import chart_schema


def test_the_schema_is_made_of_the_types() -> None:
    """And of the server's settings; `python -m tools.chart_schema` mends it."""
    assert (chart() / "values.schema.json").read_text("utf-8") == chart_schema.text()


def test_the_chart_s_values_are_the_defaults() -> None:
    """All of them are there to be read, and none is another."""
    assert Values().model_dump(by_alias=True) == defaults()


@pytest.mark.parametrize(
    ("values", "is_right"),
    [
        ({}, True),
        ({"image": {"tag": "1"}}, True),
        ({"image": {"tag": 1}}, False),
        ({"image": {"name": "x"}}, False),
        ({"images": {}}, False),
        ({"image": {"pullPolicy": "Sometimes"}}, False),
        ({"persistence": {"enabled": "yes"}}, False),
        ({"imagePullSecrets": "registry"}, False),
        ({"revision": "Next"}, False),
        ({"revision": "next-1"}, True),
        ({"certManager": {"issuer": "mesh"}}, False),
        ({"ingressGateway": {"secrets": [{"name": "tls.1", "namespace": "ingress"}]}}, True),
        ({"ingressGateway": {"secrets": [{"name": "tls"}]}}, False),
        ({"ingressGateway": {"secrets": [{"name": "*", "namespace": "ingress"}]}}, False),
        ({"ingressGateway": {"secrets": [{"name": "tls", "namespace": "a.b"}]}}, False),
        ({"settings": {"log_level": "debug", "max_streams": 5}}, True),
        ({"settings": {"log_lvl": "debug"}}, False),
        ({"tolerations": [{"operator": "Exists"}]}, True),
    ],
)
def test_types_and_schema_refuse_the_same(values: dict[str, Any], is_right: bool) -> None:
    """Helm goes by the schema, and we by the types."""
    found = merged(defaults(), values)
    schema = json.loads((chart() / "values.schema.json").read_text("utf-8"))
    assert jsonschema.Draft202012Validator(schema).is_valid(found) is is_right
    known = schema["properties"]["settings"]["properties"]
    if is_right:
        checked(found, known)
        return
    with pytest.raises(ValuesError, match=re.escape(next(iter(values)))):
        checked(found, known)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["a=1", "b=x"], {"a": 1, "b": "x"}),
        (["a.b=true,a.c=null", "a.d=007"], {"a": {"b": True, "c": None, "d": "007"}}),
        ([r"a\.b/c=d\,e"], {"a.b/c": "d,e"}),
        (["a={x,1}", "b={}"], {"a": ["x", 1], "b": []}),
        (["a=1", "a=2"], {"a": 2}),
        (["a="], {"a": ""}),
        (["a=b=c"], {"a": "b=c"}),
    ],
)
def test_words_of_the_command_line(words: list[str], expected: dict[str, Any]) -> None:
    """As `helm --set` has them."""
    assert told(words) == expected


@pytest.mark.parametrize("word", ["a", "=1", "a.b=1,a=2,a.b=3", ""])
def test_words_that_say_nothing_are_refused(word: str) -> None:
    """With the word."""
    with pytest.raises(ValuesError, match="--set"):
        told([word])


def test_what_is_laid_over_wins_and_a_null_takes_away() -> None:
    """Mappings are merged, lists are exchanged."""
    below = {"a": {"b": 1, "c": 2}, "d": [1], "e": 3}
    assert merged(below, {"a": {"b": None, "x": 0}, "d": [2], "e": {"f": 1}}) == {
        "a": {"c": 2, "x": 0},
        "d": [2],
        "e": {"f": 1},
    }
    assert below["a"] == {"b": 1, "c": 2}


def test_what_cannot_work_is_refused_by_the_chart() -> None:
    """In words."""
    with pytest.raises(TemplateError, match=r"injection\.enabled needs webhook\.enabled"):
        [*manifests(merged(defaults(), {"webhook": {"enabled": False}}))]


RULES = ROOT / "deploy" / "prometheus"


@pytest.mark.parametrize("name", ["alerts.yaml", "recording.yaml"])
def test_the_chart_has_the_rules_that_are_tested(name: str) -> None:
    """A chart reads no file that is not its own."""
    assert (chart() / "files" / name).read_text("utf-8") == (RULES / name).read_text("utf-8")
