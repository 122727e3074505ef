"""What can be said of an installation stands in three places, which say the same; and how it is said."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from meshwright.chart.overrides import merged, told, told_json
from meshwright.chart.rendering import chart, defaults, manifests
from meshwright.chart.template.tokens import TemplateError
from meshwright.chart.values import Values, ValuesError, checked
from meshwright.cli.main import app
from meshwright.controller.settings.chart import wrong
from tests.tools.forked_cli import ROOT
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
        ({"persistence": {"size": "big"}}, False),
        ({"serviceMonitor": {"interval": "often"}}, False),
        ({"image": {"tag": "a b"}}, False),
        ({"imagePullSecrets": ["Not A Name"]}, False),
        ({"cni": {"namespace": "a.b"}}, False),
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
        (
            ["ingressGateway.secrets[0].name=a,ingressGateway.secrets[0].namespace=b"],
            {"ingressGateway": {"secrets": [{"name": "a", "namespace": "b"}]}},
        ),
        (["a[0]=x", "a[2]=y"], {"a": ["x", None, "y"]}),
        (["a[0][1]=x"], {"a": [[None, "x"]]}),
        ([r"a\[0\]=x"], {"a[0]": "x"}),
    ],
)
def test_words_of_the_command_line(words: list[str], expected: dict[str, Any]) -> None:
    """As `helm --set` has them."""
    assert told(words) == expected


def test_a_place_in_a_list_is_exchanged_in_the_list_of_the_files() -> None:
    """As Helm has it: the other places stay."""
    below = {"a": [{"b": 1, "c": 2}, 3]}
    assert told(["a[0].b=7"], below) == {"a": [{"b": 7, "c": 2}, 3]}
    assert below == {"a": [{"b": 1, "c": 2}, 3]}


def test_text_and_json_of_the_command_line() -> None:
    """As `helm --set-string` and `--set-json` have them."""
    assert told(["a=1,b={true,null}"], as_text=True) == {"a": "1", "b": ["true", "null"]}
    assert told_json(['a.b=[{"c": 1}]', "d=null"]) == {"a": {"b": [{"c": 1}]}, "d": None}
    assert told_json(['{"a": {"b": 1}}', "a.c=2"]) == {"a": {"b": 1, "c": 2}}
    with pytest.raises(ValuesError, match="is not JSON"):
        told_json(["a={"])


@pytest.mark.parametrize(
    "word", ["a", "=1", "a.b=1,a=2,a.b=3", "", "[0]=1", "a[x]=1", "a[-1]=1", "a[0=1", "a[99999]=1"]
)
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


@pytest.mark.parametrize(
    ("name", "value", "is_right"),
    [
        ("log_level", "loud", False),
        ("log_level", "warning", True),
        ("max_streams", 0, False),
        ("max_streams", "500", True),
        ("max_streams", "many", False),
        ("kubernetes_reports", "yes", True),
        ("kubernetes_reports", "perhaps", False),
        ("ads_hosts", "a,b", True),
        ("ads_hosts", 5, False),
        ("ads_address", "15128", False),
        ("ads_address", "[::]:15128", True),
        ("denial_reasons", "off", True),
        ("denial_reasons", "nobody", False),
        ("drain_seconds", 5000, False),
    ],
)
def test_the_schema_and_the_server_agree_on_settings(name: str, value: object, is_right: bool) -> None:
    """Helm refuses what would have the only replica crash, and takes each form that the server takes."""
    schema = json.loads((chart() / "values.schema.json").read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(merged(defaults(), {"settings": {name: value}})) is is_right
    assert (wrong({"kubernetes": True, name: value}, Path("/state")) == "") is is_right


def test_off_is_a_word_where_one_is_wanted() -> None:
    """YAML 1.1, as Helm reads it, takes it for false."""
    schema = json.loads((chart() / "values.schema.json").read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(merged(defaults(), {"settings": {"denial_reasons": False}}))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("settings.log_level=loud", "settings.log_level is 'loud'"),
        ("settings.quiet_seconds=9", "longest_seconds must not be less than quiet_seconds"),
        ("injection.config.sidecar.placement=beside", "placement"),
        ("injection.config.polcy=enabled", "polcy"),
    ],
)
def test_what_would_crash_the_control_plane_is_not_printed(told: str, said: str) -> None:
    """By `install --print`, which reads settings and injection as the server does."""
    done = CliRunner().invoke(app, ["install", "--print", "--set", told])
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


RULES = ROOT / "deploy" / "prometheus"


@pytest.mark.parametrize("name", ["alerts.yaml", "recording.yaml"])
def test_the_chart_has_the_rules_that_are_tested(name: str) -> None:
    """A chart reads no file that is not its own."""
    assert (chart() / "files" / name).read_text("utf-8") == (RULES / name).read_text("utf-8")
