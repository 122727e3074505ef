"""Tests of build contexts: each has what its Dockerfile copies, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.commit import source_files
from tools.dockerfile import stages
from tools.release.archives import File, unpack
from tools.release.artifacts import IMAGES
from tools.release.contexts import ContextError, context, context_files, copied

ROOT = Path(__file__).parents[4]
DOCKERFILE = """# Two images.
ARG BASE=debian:12-slim
ARG OTHER=debian:12

# All have Python.
FROM ${BASE} AS installer
COPY requirements/run.txt requirements/run.txt

FROM installer AS wheel
COPY ./src/ src/
RUN build \\
 && test

FROM ${OTHER} AS proxy
COPY --from=wheel /wheel /wheel
COPY --chown=1:1 proxy.txt readme.md ./

FROM ${OTHER} AS control-plane
COPY --from=wheel /wheel /wheel
"""
FILES = {
    path: File(path.encode())
    for path in ("requirements/run.txt", "src/a/b.py", "src/c.py", "srcs/d.py", "proxy.txt", "readme.md")
}


def _context(image: str, dockerfile: str = DOCKERFILE) -> dict[str, File]:
    return context_files({**FILES, "Dockerfile": File(dockerfile.encode())}, image, "1.2.3")


def test_context_has_the_stages_of_one_image_and_what_they_copy() -> None:
    """The control plane needs neither the stage of the proxy nor its files."""
    assert list(_context("control-plane")) == ["Dockerfile", "requirements/run.txt", "src/a/b.py", "src/c.py"]
    assert _context("control-plane")["Dockerfile"].text == (
        "# The image meshwright/control-plane of Meshwright 1.2.3, for example:\n"
        "#   docker build -t meshwright/control-plane:1.2.3 - <"
        " meshwright-control-plane-1.2.3-context.tar.gz\n"
        "# Tags of base images move: pin each by digest with --build-arg.\n"
        "ARG BASE=debian:12-slim\nARG OTHER=debian:12\n\n"
        "# All have Python.\n"
        "FROM ${BASE} AS installer\nCOPY requirements/run.txt requirements/run.txt\n\n"
        "FROM installer AS wheel\nCOPY ./src/ src/\nRUN build \\\n && test\n\n"
        "FROM ${OTHER} AS control-plane\nCOPY --from=wheel /wheel /wheel\n"
    )
    assert {*_context("proxy")} - {*_context("control-plane")} == {"proxy.txt", "readme.md"}


@pytest.mark.parametrize(
    ("copy", "error"),
    [
        ("COPY . .", "stage proxy copies .: name files or folders"),
        ("COPY ./ /src", "stage proxy copies ./: name files or folders"),
        ("COPY *.txt /src", "stage proxy copies *.txt: name files or folders"),
        ("COPY missing /src", "stage proxy copies missing, which is not in the commit"),
    ],
)
def test_copy_without_a_tracked_file_is_refused(copy: str, error: str) -> None:
    """A context of the whole clone would take along whatever is in it."""
    with pytest.raises(ContextError) as raised:
        _context("proxy", DOCKERFILE.replace("COPY --chown=1:1 proxy.txt readme.md ./", copy))
    assert str(raised.value) == f"Dockerfile: {error}"


def test_stage_with_a_blank_line_is_refused() -> None:
    """The rest of such a stage would be missing from the context without a word."""
    with pytest.raises(ContextError, match="each stage must be one paragraph"):
        _context("proxy", DOCKERFILE.replace("RUN build", "\nRUN build"))


@pytest.fixture(scope="module")
def ours() -> dict[str, File]:
    """The files of this repository."""
    return source_files(ROOT)


@pytest.mark.parametrize("image", IMAGES)
def test_dockerfile_of_a_context_is_complete(image: str, ours: dict[str, File], tmp_path: Path) -> None:
    """It builds this image without `--target`, its stages need no other file, and hadolint finds nothing."""
    files = context_files(ours, image, "1.2.3")
    text = files.pop("Dockerfile").text
    every = stages(text)
    assert list(every)[-1] == image
    sources = {path for stage in every.values() for path in copied(stage)}
    assert {path for path in files if not any(f"{path}/".startswith(f"{each}/") for each in sources)} == set()
    assert {each for each in sources if not any(f"{path}/".startswith(f"{each}/") for path in files)} == set()
    (tmp_path / "Dockerfile").write_text(text, "utf-8")
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, tmp_path / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_context_is_an_archive_without_a_top_folder() -> None:
    """`docker build -` expects the Dockerfile at the top of the archive."""
    files = {**FILES, "Dockerfile": File(DOCKERFILE.encode())}
    assert unpack(context(files, "proxy", "1.2.3", 0)) == _context("proxy")


def test_context_has_no_tests_and_no_documents(ours: dict[str, File]) -> None:
    """The images are built from packages, chart, build hook and locked requirements alone."""
    names = {image: list(context_files(ours, image, "1.2.3")) for image in IMAGES}
    folders = {name.partition("/")[0] for name in names["proxy"]}
    packages = {"catalog", "certs", "meshwright", "protos", "xds"}
    files = {"Dockerfile", "LICENSE", "README.md", "pyproject.toml"}
    assert folders == {*packages, *files, "deploy", "requirements", "tools"}
    assert {*names["proxy"]} - {*names["control-plane"]} == {"requirements/envoy.txt"}
