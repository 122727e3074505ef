"""Tests of templates: results by the documentation of Go's text/template and of Helm's functions."""

from collections.abc import Mapping
from typing import Any

import pytest

from meshwright.chart.template.evaluation import rendered
from meshwright.chart.template.parsing import parsed
from meshwright.chart.template.tokens import TemplateError

TOLD = {
    "yes": True,
    "no": False,
    "name": "shop",
    "list": ["a", "b"],
    "map": {"b": 2, "a": "1"},
    "nothing": None,
}


def _text(text: str, told: Mapping[str, Any] = TOLD) -> str:
    template = parsed("t.yaml", text)
    return rendered(template, told, template.defined)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain {} text", "plain {} text"),
        ("{{ .name }}", "shop"),
        ("{{.name}}{{ .map.a }}{{ $.map.b }}", "shop12"),
        ("{{ .missing }}{{ .nothing }}", ""),
        ("{{ .yes }} {{ true }} {{ 12 }} {{ -3 }}", "true true 12 -3"),
        ('{{ "a\\n\\"b\\"" }}{{ `\\n` }}', 'a\n"b"\\n'),
        ("a  {{- .name -}}  b", "ashopb"),
        ("a\n  {{- /* not said */ -}}\n b", "ab"),
        ("a {{/* nor this */}}b", "a b"),
        ("{{ if .yes }}1{{ else }}2{{ end }}", "1"),
        ("{{ if .missing }}1{{ else if .name }}2{{ else }}3{{ end }}", "2"),
        ("{{ if .no }}1{{ else if .no }}2{{ else }}3{{ end }}", "3"),
        ("{{ with .map }}{{ .a }}{{ $.name }}{{ else }}-{{ end }}", "1shop"),
        ("{{ with .missing }}1{{ else }}{{ .name }}{{ end }}", "shop"),
        ("{{ range .list }}[{{ . }}]{{ end }}", "[a][b]"),
        ("{{ range $i, $each := .list }}{{ $i }}{{ $each }}{{ end }}", "0a1b"),
        ("{{ range $key, $value := .map }}{{ $key }}={{ $value }} {{ end }}", "a=1 b=2 "),
        ("{{ range .missing }}1{{ else }}none{{ end }}", "none"),
        ("{{ $x := 1 }}{{ if .yes }}{{ $x := 2 }}{{ end }}{{ $x }}", "1"),
        ("{{ $x := 1 }}{{ if .yes }}{{ $x = 2 }}{{ end }}{{ $x }}", "2"),
        ('{{ define "d" }}<{{ .a }}>{{ end }}{{ include "d" .map }}', "<1>"),
        ('{{ .missing | default "x" | quote }}', '"x"'),
        ("{{ .name | default 1 }}", "shop"),
        ("{{ and .yes .name }} {{ or .no .name }} {{ not .no }}", "shop shop true"),
        ('{{ if and (eq .name "shop") (ne .map.b 3) }}1{{ end }}', "1"),
        ('{{ printf "%s-%d" .name 3 }}', "shop-3"),
        ("{{ list 1 .name | toJson }}", '[1,"shop"]'),
        ('{{ dict "b" 1 "a" "<" | toJson }}', '{"a":"\\u003c","b":1}'),
        ("x:{{ .map | toYaml | nindent 2 }}", 'x:\n  a: "1"\n  b: 2'),
        ('{{ merge (dict "a" 1) (dict "a" 2 "b" (dict "c" 3)) | toJson }}', '{"a":1,"b":{"c":3}}'),
        ('{{ dig "map" "a" "-" . }}{{ dig "map" "c" "-" . }}{{ dig "x" "y" "-" . }}', "1--"),
        ('{{ true | ternary 1 2 }}{{ false | ternary 1 2 }} {{ "abc" | trunc 2 }}', "12 ab"),
        ('{{ "ImNhIjo=" | b64dec }} {{ contains "\\"ca\\":" (b64dec "ImNhIjo=") }}', '"ca": true'),
        ('{{ if lookup "v1" "Secret" "home" "name" }}1{{ else }}2{{ end }}', "2"),
        ('{{ "abc" | replace "b" "-" }}', "a-c"),
        ("{{ toYaml .list }}", "- a\n- b"),
        ('{{ toYaml (list "on" "1e3" "0x1" "" "a: b" "yes" "é" "-") }}',
         '- "on"\n- "1e3"\n- "0x1"\n- ""\n- "a: b"\n- "yes"\n- "é"\n- "-"'),
    ],
)  # fmt: skip
def test_template_has_the_documented_result(text: str, expected: str) -> None:
    """The expected text is that of Go and Helm."""
    assert _text(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n{{ nosuch .name }}", "t.yaml:2: unknown function 'nosuch' here"),
        ("\n\n{{ .name.first }}", "t.yaml:3: has no field 'first': what should have it is 'shop'"),
        ("{{ if .yes }}", "t.yaml:1: is not ended"),
        ("{{ end }}", "t.yaml:1: ends what has not begun"),
        ("{{ (.name }}", "a parenthesis is not closed"),
        ("{{ .name ; }}", "';' is not understood"),
        ("{{ $x }}", "unknown variable $x"),
        ("{{ $x = 1 }}", "unknown variable $x"),
        ("{{ .map }}", "toYaml or toJson says how"),
        ('{{ fail "as told" }}', "t.yaml:1: as told"),
        ('{{ include "none" . }}', "unknown template 'none'"),
        ('{{ template "x" }}', "'template' is not understood here"),
        ('{{ printf "%5d" 1 }}', "only %s and %d are understood here"),
        ("{{ 1 2 }}", "only a function takes arguments"),
    ],
)
def test_unsupported_template_is_an_error_with_its_line(text: str, said: str) -> None:
    """Unsupported syntax is never guessed, because Helm would give it a meaning."""
    with pytest.raises(TemplateError) as caught:
        _text(text)
    assert said in str(caught.value)
