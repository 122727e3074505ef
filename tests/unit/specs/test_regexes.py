"""Tests that regular expressions are refused exactly if a supported Envoy refuses them.

The expected results were determined with Envoy 1.36 to 1.40 (`--mode validate`) and not with the library.
"""

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.origins import InFile
from meshwright.mesh.problems.problem import Severity
from meshwright.sidecars.envoy.bootstrap.bootstrap import REGEX_PROGRAM_SIZE
from meshwright.specs.reader import read
from meshwright.specs.regexes import MAX_PROGRAM_SIZE, MAX_TOTAL_SIZE, regex_fault


@pytest.mark.parametrize(
    "pattern",
    [
        "/books-bought",
        ".*-http-client/*.*",
        "^(.*?;)?(type=insider)(;.*)?$",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        r"\d+\.\w*\\1",
        "(?i)abc(?:d|e)(?P<name>f)(?<other>g)",
        "(?U)a+",
        "[]a]",
        "[^]a(?=]",
        "[a-b-c]",
        r"\(?=a",
        "a{2,}?b{,3}c{",
        "a{1000}",
        "(a{10}){100}",
        "a{900}b{900}c{900}",
        "(abcdefghij){300}",
        "x" * 4096,
        "(" * 2000 + ")" * 2000,
        "(?P<x>a)(?P<x>b)",
        ".{1000}",
        "[[:alpha:]]",
        r"\Qa.b\E",
        r"\p{Greek}\pN",
        r"\C\z",
        r"/caf\x{e9}",
        "/café",
        "/[à-é]",
        "\x00\t",
        "|",
    ],
)
def test_pattern_valid_in_every_envoy_is_accepted(pattern: str) -> None:
    """Other engines may read these patterns differently or refuse them."""
    assert regex_fault(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "must not be empty"),
        ("(", "missing )"),
        ("*", "no argument for repetition operator"),
        ("(?=a)", "invalid perl operator: (?="),
        ("a(?!b)", "invalid perl operator: (?!"),
        ("(?<=a)b", "invalid perl operator: (?<="),
        ("(?<!a)b", "invalid perl operator: (?<!"),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("(?P<x>a)(?P=x)", "invalid perl operator: (?P"),
        ("(a)?(?(1)b|c)", "invalid perl operator: (?("),
        ("(?>a)", "invalid perl operator: (?>"),
        ("(?#comment)", "invalid perl operator: (?#"),
        ("(?x)a b", "invalid perl operator: (?x"),
        ("(?a)x", "invalid perl operator: (?a"),
        ("a++", "bad repetition operator: ++"),
        ("a*+", "bad repetition operator: *+"),
        ("a**", "bad repetition operator: **"),
        (r"a\Z", r"invalid escape sequence: \Z"),
        (r"\u0041", r"invalid escape sequence: \u"),
        (r"/caf\é", "invalid escape sequence"),
        (r"/[\b]x", r"invalid escape sequence: \b"),
        ("[[:foo:]]", "invalid character class range: [:foo:]"),
        (r"\p{Nobody}", "invalid character class range"),
        ("a{1001}", "invalid repetition size: {1001}"),
        ("a{2,1}", "invalid repetition size: {2,1}"),
        ("(a{11}){100}", "invalid repetition size: {100}"),
        ("((a{10}){10}b){11}", "invalid repetition size: {11}"),
        ("a" * 4097, "at most 4096 characters"),
        (r"\pN{200}", "instructions"),
        (r"\pL{1000}", "pattern too large"),
        ("a\ud800", "surrogate pair"),
        # Envoy 1.38.3 refuses the first, 1.39.3 and 1.40 the others.
        ("[ê-é]", "RE2): invalid character class range"),
        (r"\x{10FFFF}", "newer Envoys do): invalid escape sequence"),
        (r"\777", "newer Envoys do): invalid escape sequence"),
        ("(?P<été>x)", "newer Envoys do): invalid named capture group"),
    ],
)
def test_pattern_refused_by_some_envoy_is_refused(pattern: str, why: str) -> None:
    """The message states the rule, with RE2's own message."""
    fault = regex_fault(pattern)
    assert fault.startswith("must ")
    assert why in fault


def test_program_size_limit_of_proxies_is_above_that_of_the_reader() -> None:
    """The bootstrap of the proxies sets their limit."""
    assert MAX_PROGRAM_SIZE < REGEX_PROGRAM_SIZE


@given(st.text(st.sampled_from("ab.*+?()[]{}|^$-:=!<>#&~,19ikPQEU "), max_size=12))
def test_ascii_pattern_is_equally_valid_as_utf8_and_as_latin1(pattern: str) -> None:
    """One compilation is thus enough; the program for bytes is never longer."""
    sizes = []
    for encoding in (re2.Options.Encoding.UTF8, re2.Options.Encoding.LATIN1):
        options = re2.Options()
        options.log_errors, options.encoding = False, encoding
        try:
            sizes.append(re2.compile(pattern.encode(), options).programsize)
        except re2.error:
            sizes.append(0)
    by_characters, by_bytes = sizes
    assert (by_characters > 0) is (by_bytes > 0)
    assert by_bytes <= by_characters


def test_total_size_of_the_patterns_of_an_object_is_limited() -> None:
    """Short patterns may need thousands of instructions each, and the reader serves other objects too."""
    matches = [{"name": f"m{number}", "pathRegex": f".{{1000}}{number}"} for number in range(300)]
    document = {
        "apiVersion": "specs.smi-spec.io/v1alpha4",
        "kind": "HTTPRouteGroup",
        "metadata": {"name": "paths", "namespace": "shop"},
        "spec": {"matches": matches},
    }
    (problem,) = read(document, InFile("paths.yaml")).problems
    assert (problem.code, problem.severity) == ("MW1014", Severity.ERROR)
    assert problem.expected == (
        f"all regular expressions of this object up to this one need more than {MAX_TOTAL_SIZE} "
        "RE2 instructions, which is the maximum; use fewer repetitions, or split the object into "
        "several"
    )
    place = int(problem.field.removeprefix("spec.matches[").removesuffix("].pathRegex"))
    few = {**document, "spec": {"matches": matches[:place]}}
    assert read(few, InFile("paths.yaml")).problems == ()
