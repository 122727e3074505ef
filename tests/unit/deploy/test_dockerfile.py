"""Tests of the Dockerfile: its images, their stages, and the builds that the documentation shows."""

import re
import shlex
from pathlib import Path

from tests.tools.forked_cli import ROOT
from tools.dockerfile import FILE, defaults, published, stages

TEXT = FILE.read_text("utf-8")
STAGES = stages(TEXT)
TARGETS = ["control-plane", "proxy"]
_BUILD = re.compile(r"^(?:#  |\$)? *(docker build (?!.* - < ).*)$", re.MULTILINE)
"""A build as pages type it: alone, behind a prompt, or in a comment, but none of a release's context."""


def test_published_images_are_the_control_plane_and_the_proxy() -> None:
    """No other stage is published, and a build without `--target` makes the control plane."""
    assert sorted(published(STAGES.values())) == TARGETS
    assert list(STAGES)[-1] == "control-plane"


def test_control_plane_image_is_built_without_envoy() -> None:
    """Envoy is fetched in a separate stage, which only the proxy needs."""
    assert _made_of("control-plane") == {"${PYTHON}", "environment", "installer", "${DEBIAN}"}
    assert _made_of("proxy") == {"environment", "envoy", "installer", "${DEBIAN}"}


def _made_of(name: str) -> set[str]:
    """Return the stages and base images that a build of a target needs."""
    result: set[str] = set()
    for source in STAGES[name].sources:
        result |= {source, *(_made_of(source) if source in STAGES else ())}
    return result


def test_every_base_image_is_an_argument_with_a_tag() -> None:
    """Each base image can be pinned by digest at build time, and its default has a tag."""
    bases = {stage.base for stage in STAGES.values()} - set(STAGES)
    assert bases == {f"${{{name}}}" for name in defaults(TEXT)}
    tagged = r"[^@:]+:[\w.-]+(@sha256:[0-9a-f]{64})?"
    assert [default for default in defaults(TEXT).values() if not re.fullmatch(tagged, default)] == []


def test_every_copied_file_exists() -> None:
    """A `COPY` takes files of the repository, or of an earlier stage."""
    earlier: list[str] = []
    missing: list[str] = []
    for stage in STAGES.values():
        for words in map(str.split, stage.arguments("COPY")):
            *files, _ = (word for word in words if not word.startswith("--"))
            of_stage = [word.removeprefix("--from=") for word in words if word.startswith("--from=")]
            missing += [item for item in of_stage if item not in earlier]
            missing += [file for file in files if not of_stage and not (ROOT / file).exists()]
        earlier.append(stage.name)
    assert missing == []


def test_every_documented_build_names_its_target() -> None:
    """The image has the target's name, the context is the root, and the build arguments exist."""
    builds = {
        (str(page.relative_to(ROOT)), *_build(command)) for page in _pages() for command in _commands(page)
    }
    assert {page for page, *_ in builds} == {
        "Dockerfile",
        "README.md",
        "docs/start/install.md",
        "docs/start/kubernetes.md",
    }
    assert {(page, target) for page, target, *_ in builds} == {
        (page, target) for page, *_ in builds for target in TARGETS
    }
    wrong = [build for build in builds if build[1] != build[2] or not build[3] <= set(defaults(TEXT))]
    assert wrong == []


def _pages() -> list[Path]:
    return [FILE, *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def _commands(page: Path) -> list[str]:
    return _BUILD.findall(page.read_text("utf-8").replace("\\\n", " "))


def _build(command: str) -> tuple[str, str, frozenset[str]]:
    """Return the target of `docker build`, the image's name without its path, and the arguments."""
    docker, build, *options, context = shlex.split(command, comments=True)
    assert (docker, build, context) == ("docker", "build", ".")
    answer = list(zip(options[::2], options[1::2], strict=True))
    assert {name for name, _ in answer} <= {"--target", "--build-arg", "-t"}, command
    last = dict(answer)
    image = last["-t"].rpartition("/")[2].partition(":")[0]
    arguments = frozenset(value.partition("=")[0] for name, value in answer if name == "--build-arg")
    return last["--target"], image, arguments


def test_lint_reads_the_dockerfile() -> None:
    """`make lint` passes the Dockerfile to hadolint."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.findall(r"/hadolint (.*)$", makefile, re.MULTILINE) == ["Dockerfile"]
