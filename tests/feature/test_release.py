"""Tests of `make release`: equal builds, an installation in an empty environment, and the images' builds.

One commit of the working tree's files is built from two clones. The clones differ in everything that may
differ between two maintainers: path, umask, time zone, locale, git's settings, and files that git ignores.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from meshwright import guard
from tests.tools.commit import TIME, commit, source_files
from tools.real_parts.images.environments import ours
from tools.release.__main__ import NOT_SIGNED
from tools.release.archives import unpack
from tools.release.artifacts import SUMS, Names
from tools.release.versions import version
from tools.release.wheels import write_tree

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
UV = Path(sys.executable).with_name("uv")
SECONDS = 900
KEYGEN = shutil.which("ssh-keygen")
pytestmark = pytest.mark.timeout(1000)  # builds fetch the requirements that the caches lack

IGNORED = {
    "protos/envoy/config/accesslog/v3/accesslog_pb2.py": "raise SystemExit('of an older build')\n",
    "protos/envoy/stale_pb2.py": "",
    "meshwright/__pycache__/guard.cpython-311.pyc": "",
    "xds/__pycache__/notes.txt": "",
    "build/notes.txt": "",
    ".state/key.pem": "secret",
}
"""Files of one clone that git ignores, and that a build of the folder could take along."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release: its folder, the output of the command, and the source with its version."""

    folder: Path
    output: str
    tracked: frozenset[str]
    commit: str

    @property
    def names(self) -> Names:
        """Return the names of the files."""
        return Names(str(PROJECT["project"]["version"]))

    def path(self, name: str) -> Path:
        """Return the path of a file."""
        return self.folder / name

    @property
    def files(self) -> dict[str, bytes]:
        """Return the content of every file, by name."""
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Release, Release]:
    """The releases of one commit, from two clones."""
    origin = tmp_path_factory.mktemp("origin")
    files = source_files(ROOT)
    write_tree(files, origin)
    made = commit(origin)
    plain = _clone(origin, tmp_path_factory.mktemp("a") / "clone", 0o022)
    other = _clone(origin, tmp_path_factory.mktemp("deep") / "a folder" / "größer" / "clone", 0o077)
    with (other / ".git/config").open("a") as config:
        config.write("[core]\n\tautocrlf = true\n[tar]\n\tumask = 0777\n")
    for path, text in IGNORED.items():
        (other / path).parent.mkdir(parents=True, exist_ok=True)
        (other / path).write_text(text)
    first = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "1"}
    second = {"LC_ALL": "POSIX", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu", "SOURCE_DATE_EPOCH": "1"}
    if KEYGEN is not None:
        second["SIGNING_KEY"] = str(_key(other))
    with ThreadPoolExecutor(2) as pool:
        built = (pool.submit(_make, plain, 0o022, first), pool.submit(_make, other, 0o077, second))
    tracked = frozenset(files)
    return (
        Release(plain / "dist", built[0].result(), tracked, made),
        Release(other / "dist", built[1].result(), tracked, made),
    )


def _clone(origin: Path, folder: Path, umask: int) -> Path:
    subprocess.run(["git", "clone", "-q", str(origin), str(folder)], check=True, umask=umask)
    return folder


def _key(clone: Path) -> Path:
    """Make a key and the list of trusted keys as in docs/extend/releasing.md; return the key's path."""
    key = clone / ".state/key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True)
    signer = f"maintainer@mesh.example {key.with_suffix('.pub').read_text()}"
    (clone / "allowed_signers").write_text(signer)
    (clone / ".git/info/exclude").write_text("allowed_signers\n")
    return key


def _make(clone: Path, umask: int, environment: Mapping[str, str]) -> str:
    """Build a release with the clone's own program; return its output."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "SIGNING"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "tools.release"],
        cwd=clone,
        env={**kept, **environment},
        umask=umask,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def release(releases: tuple[Release, Release]) -> Release:
    """One of the two equal releases."""
    return releases[0]


def test_two_builds_of_a_commit_are_equal_byte_for_byte(releases: tuple[Release, Release]) -> None:
    """Path, umask, time zone, locale, settings of git and ignored files do not matter."""
    first, second = (each.files for each in releases)
    assert set(first) == {*releases[0].names.summed, SUMS}
    unsigned = {name: content for name, content in second.items() if not name.endswith(".sig")}
    assert {name for name in first if first[name] != unsigned.get(name)} == set()
    assert set(first) == set(unsigned)


def test_command_prints_every_sum_and_that_nothing_is_signed(release: Release) -> None:
    """Without a key the last line has the command that signs."""
    head, *lines, last = release.output.splitlines()
    assert head == f"meshwright {release.names.version} from commit {release.commit}"
    assert [line.rpartition("/")[2] for line in lines] == [*release.names.summed, SUMS]
    assert last == NOT_SIGNED


def test_sums_of_a_release_are_right(release: Release) -> None:
    """`sha256sum -c` in the folder finds every file."""
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", SUMS],
        cwd=release.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_time_in_archives_is_the_commits(release: Release) -> None:
    """No clock of the build is in a file; a wheel's times have a resolution of 2 s."""
    names = release.names
    contexts = (names.context("control-plane"), names.context("proxy"))
    for name in (names.sdist, names.chart, *contexts):
        with tarfile.open(release.path(name)) as archive:
            assert {member.mtime for member in archive} == {TIME}, name
    with zipfile.ZipFile(release.path(names.wheel)) as wheel:
        assert {each.date_time for each in wheel.infolist()} == {
            datetime.fromtimestamp(TIME, UTC).timetuple()[:6]
        }


def test_sdist_has_exactly_the_source_files(release: Release) -> None:
    """Generated and ignored files are missing; PKG-INFO is the only addition."""
    with tarfile.open(release.path(release.names.sdist)) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert names == {*release.tracked, "PKG-INFO"}


def test_bill_and_provenance_have_the_sums_of_the_files(release: Release) -> None:
    """The three documents agree, and the provenance has the commit."""
    sums = {
        name: digest for digest, name in map(str.split, release.path(SUMS).read_text("utf-8").splitlines())
    }
    bill = json.loads(release.path(release.names.bill).read_text("utf-8"))
    made = json.loads(release.path(release.names.provenance).read_text("utf-8"))
    assert bill["metadata"]["component"]["hashes"] == [
        {"alg": "SHA-256", "content": sums[release.names.wheel]}
    ]
    assert {each["name"]: each["digest"]["sha256"] for each in made["subject"]} == {
        name: sums[name] for name in release.names.built
    }
    commit_of = made["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"]["gitCommit"]
    assert commit_of == release.commit


def test_wheel_has_exactly_our_packages(release: Release) -> None:
    """The wheel has no tests and no demo, each package is typed, and Envoy's API is under `protos`."""
    names = zipfile.ZipFile(release.path(release.names.wheel)).namelist()
    top = {name.split("/")[0] for name in names if ".dist-info/" not in name}

    assert top == set(PACKAGES) == {*guard.PACKAGES, "meshwright"}
    assert set(PROJECT["tool"]["check-wheel-contents"]["toplevel"]) == top
    assert {name.split("/")[0] for name in names if name.endswith("/py.typed")} == set(PACKAGES)
    assert "protos/envoy/service/discovery/v3/ads_pb2.py" in names
    assert "protos/meshwright/enrolment/v1/enrolment_pb2.py" in names


def test_images_have_the_same_files_as_the_wheel(release: Release) -> None:
    """Images for tests are put together without a wheel, so each file is compared byte by byte."""
    wheel = zipfile.ZipFile(release.path(release.names.wheel))
    result = {name.removeprefix("site/"): path for name, path in ours("site").items()}
    shipped = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    assert result.keys() == shipped.keys()
    other = [
        name
        for name, path in result.items()
        if not isinstance(path, Path) or path.read_bytes() != shipped[name]
    ]
    assert other == []


def test_image_context_builds_the_same_wheel_offline(release: Release, tmp_path: Path) -> None:
    """As in the Dockerfile, pip builds without a network, so that images have exactly the released wheel."""
    context = tmp_path / "context"
    write_tree(unpack(release.path(release.names.context("control-plane")).read_bytes()), context)
    pip = (sys.executable, "-m", "pip")
    lock = ("--require-hashes", "--target", tmp_path / "build", "-r", context / "requirements/build.txt")
    install = (UV, "pip", "install", "--quiet", "--python", sys.executable)
    subprocess.run([*install, *lock], check=True, timeout=SECONDS)
    subprocess.run(
        [*pip, "wheel", "--quiet", "--no-index", "--no-build-isolation", "--no-deps", "."],
        cwd=context,
        check=True,
        timeout=SECONDS,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "build"), "SOURCE_DATE_EPOCH": str(TIME)},
    )
    (built,) = context.glob("*.whl")
    assert built.name == release.names.wheel
    assert built.read_bytes() == release.path(built.name).read_bytes()


@pytest.fixture(scope="module")
def installed(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in an environment with the release alone, each file verified by its hash."""
    folder = tmp_path_factory.mktemp("installed")
    names = release.names
    wheel = release.path(names.wheel)
    (digest,) = re.findall(
        rf"^(\w+)  {re.escape(names.wheel)}$", release.path(SUMS).read_text(), re.MULTILINE
    )
    lock = release.path(names.requirements).read_text("utf-8")
    (folder / "lock.txt").write_text(f"{lock}meshwright @ {wheel.as_uri()} --hash=sha256:{digest}\n", "utf-8")
    python = folder / "empty/bin/python"
    for words in (
        ("venv", "--quiet", "--python", sys.executable, folder / "empty"),
        ("pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", folder / "lock.txt"),
        ("pip", "check", "--quiet", "--python", python),
    ):
        subprocess.run([UV, *words], check=True, timeout=SECONDS, cwd=folder)
    return python.with_name("meshwright")


def _run(command: Path, folder: Path, *words: str) -> str:
    """Run the installed command without any variable of the tests; return its output."""
    done = subprocess.run(
        [command, *words],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


def test_installed_wheel_prints_its_version(installed: Path, tmp_path: Path) -> None:
    """The version comes from the metadata of the wheel, and pyproject.toml decides it."""
    tree = source_files(ROOT, "pyproject.toml")
    assert _run(installed, tmp_path, "--version") == f"{version(tree)}\n"


def test_installed_wheel_has_the_data_of_its_commands(installed: Path, tmp_path: Path) -> None:
    """An example is linted, and the chart and the reference page need files of the wheel beside its code."""
    shutil.copy(ROOT / "docs/examples/hello.yaml", tmp_path)
    assert _run(installed, tmp_path, "lint", "hello.yaml") == "no problems found\n"
    manifests = _run(installed, tmp_path, "install", "--print")
    assert f"image: meshwright/control-plane:{PROJECT['project']['version']}\n" in manifests.replace('"', "")
    page = _run(installed, tmp_path, "schema", "--page")
    assert page == (ROOT / "docs/policy/reference.md").read_text("utf-8")


@pytest.mark.skipif(KEYGEN is None, reason="ssh-keygen is not installed")
def test_signatures_of_a_release_are_verified_as_documented(releases: tuple[Release, Release]) -> None:
    """The release that was made with a key has a signature of the sums, the bill and the provenance."""
    release = releases[1]
    verify = ("-Y", "verify", "-f", "../allowed_signers", "-I", "maintainer@mesh.example")
    for name in release.names.signed:
        done = subprocess.run(
            ["ssh-keygen", *verify, "-n", "meshwright-release", "-s", f"{name}.sig"],
            cwd=release.folder,
            input=release.path(name).read_bytes(),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert re.search(r"^signed with the key SHA256:\S+ for the namespace", release.output.splitlines()[-1])
