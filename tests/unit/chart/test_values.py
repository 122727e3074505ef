"""Tests of the values of the chart: schema, types and defaults agree, and `--set` is read as by Helm."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from meshwright.chart.overrides import merged, parse_set, parse_set_json
from meshwright.chart.rendering import chart, defaults, manifests
from meshwright.chart.template.tokens import TemplateError
from meshwright.chart.values import Values, ValuesError, checked
from meshwright.cli.main import app
from meshwright.controller.settings.chart import wrong
from tests.tools.forked_cli import ROOT
from tools import chart_schema


def test_schema_file_equals_the_generated_schema() -> None:
    """The schema is generated from the types and the server's settings.

    `python -m tools.chart_schema` rewrites the file.
    """
    assert (chart() / "values.schema.json").read_text("utf-8") == chart_schema.text()


def test_values_file_has_exactly_the_defaults_of_the_types() -> None:
    """Users read the defaults in values.yaml."""
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
def test_types_and_schema_refuse_the_same_values(values: dict[str, Any], is_right: bool) -> None:
    """Helm validates with the schema, and `meshwright install` with the types."""
    result = merged(defaults(), values)
    schema = json.loads((chart() / "values.schema.json").read_text("utf-8"))
    assert jsonschema.Draft202012Validator(schema).is_valid(result) is is_right
    known = schema["properties"]["settings"]["properties"]
    if is_right:
        checked(result, known)
        return
    with pytest.raises(ValuesError, match=re.escape(next(iter(values)))):
        checked(result, known)


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
def test_set_options_are_read_as_by_helm(words: list[str], expected: dict[str, Any]) -> None:
    """The syntax is that of `helm --set`."""
    assert parse_set(words) == expected


def test_indexed_option_changes_one_item_of_a_list() -> None:
    """The other items stay, as in Helm."""
    below = {"a": [{"b": 1, "c": 2}, 3]}
    assert parse_set(["a[0].b=7"], below) == {"a": [{"b": 7, "c": 2}, 3]}
    assert below == {"a": [{"b": 1, "c": 2}, 3]}


def test_text_and_json_options_are_read_as_by_helm() -> None:
    """The syntax is that of `helm --set-string` and `--set-json`."""
    assert parse_set(["a=1,b={true,null}"], as_text=True) == {"a": "1", "b": ["true", "null"]}
    assert parse_set_json(['a.b=[{"c": 1}]', "d=null"]) == {"a": {"b": [{"c": 1}]}, "d": None}
    assert parse_set_json(['{"a": {"b": 1}}', "a.c=2"]) == {"a": {"b": 1, "c": 2}}
    with pytest.raises(ValuesError, match="is not JSON"):
        parse_set_json(["a={"])


@pytest.mark.parametrize(
    "word", ["a", "=1", "a.b=1,a=2,a.b=3", "", "[0]=1", "a[x]=1", "a[-1]=1", "a[0=1", "a[99999]=1"]
)
def test_malformed_set_option_is_refused(word: str) -> None:
    """The error names the option."""
    with pytest.raises(ValuesError, match="--set"):
        parse_set([word])


def test_merge_prefers_the_upper_values_and_removes_nulls() -> None:
    """Mappings are merged, lists are replaced, and the lower values are not modified."""
    below = {"a": {"b": 1, "c": 2}, "d": [1], "e": 3}
    assert merged(below, {"a": {"b": None, "x": 0}, "d": [2], "e": {"f": 1}}) == {
        "a": {"c": 2, "x": 0},
        "d": [2],
        "e": {"f": 1},
    }
    assert below["a"] == {"b": 1, "c": 2}


def test_chart_refuses_injection_without_the_webhook() -> None:
    """Pods are injected by the webhook's server, so the combination cannot work."""
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
def test_schema_and_server_accept_the_same_settings(name: str, value: object, is_right: bool) -> None:
    """Helm refuses a setting that would crash the only replica.

    Every form of a value that the server accepts is accepted.
    """
    schema = json.loads((chart() / "values.schema.json").read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(merged(defaults(), {"settings": {name: value}})) is is_right
    assert (wrong({"kubernetes": True, name: value}, Path("/state")) == "") is is_right


def test_schema_accepts_false_for_the_word_off() -> None:
    """Helm reads YAML 1.1, in which an unquoted `off` is false."""
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
def test_install_print_refuses_values_that_would_crash_the_control_plane(told: str, said: str) -> None:
    """`install --print` reads settings and injection configuration as the server does."""
    done = CliRunner().invoke(app, ["install", "--print", "--set", told])
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


RULES = ROOT / "deploy" / "prometheus"


@pytest.mark.parametrize("name", ["alerts.yaml", "recording.yaml"])
def test_chart_has_the_tested_prometheus_rules(name: str) -> None:
    """A chart can read only its own files, so the rules are copied."""
    assert (chart() / "files" / name).read_text("utf-8") == (RULES / name).read_text("utf-8")
