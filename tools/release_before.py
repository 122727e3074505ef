"""Archives of earlier releases, with which tests upgrade and roll back.

    python -m tools.release_before 0.2.0

The command writes `tests/upgrades/0.2.0.tar.xz` from the commit that is checked out, with the generated
modules of `protos/`. Run it in the checkout of the release, after `make setup`. Tests unpack an archive once
into `build/releases/` and run it with the libraries of the present environment.

An archive is in the repository because CI clones without history, and holds generated modules because their
generator needs packages that are not in the environment of the tests.
"""

import hashlib
import lzma
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Final

from tools.release import versions
from tools.release.archives import File, tar, unpack
from tools.release.source import SourceError, committed
from tools.release.wheels import write_tree

ROOT: Final = Path(__file__).resolve().parent.parent
ARCHIVES: Final = ROOT / "tests" / "upgrades"
UNPACKED: Final = ROOT / "build" / "releases"
CONTENT: Final = ("catalog", "certs", "deploy/chart", "meshwright", "protos", "pyproject.toml", "xds")
"""Files of the commit in an archive: the packages of the wheel, the chart, and the project's metadata."""

_SUFFIX: Final = ".tar.xz"
_COMMAND: Final = """\
#!/bin/sh
export PYTHONPATH={folder} PYTHONSAFEPATH=1
exec {python} -m meshwright "$@"
"""


class ArchiveError(Exception):
    """Error for an archive that cannot be written or found; the message has the remedy."""


def before() -> str:
    """Return the version of the release before, which is the version of the only archive in the repository.

    Raises ArchiveError without an archive, or for several.
    """
    versions = sorted(path.name.removesuffix(_SUFFIX) for path in ARCHIVES.glob(f"*{_SUFFIX}"))
    if len(versions) != 1:
        raise ArchiveError(f"{ARCHIVES} must have one archive, but has {', '.join(versions) or 'none'}")
    return versions[0]


def archive(root: Path, version: str) -> bytes:
    """Return the archive of the commit that is checked out in `root`.

    Equal content gives equal bytes: files are sorted, without owner, with time 0. Raises ArchiveError if the
    commit has another version, or if modules of `protos/` are not generated.
    """
    files = committed(root, *CONTENT)
    if (present := versions.version(files)) != version:
        raise ArchiveError(
            f"the commit has version {present}, not {version}: check out the release {version}"
        )
    generated = {str(path.relative_to(root)): path for path in (root / "protos").rglob("*.py")}
    if "protos/envoy/__init__.py" not in generated:
        raise ArchiveError("protos/ has no generated modules: run `make setup`")
    files |= {name: File(path.read_bytes()) for name, path in generated.items()}
    return lzma.compress(tar(dict(sorted(files.items())), "", 0), preset=9 | lzma.PRESET_EXTREME)


def unpacked() -> Path:
    """Return the folder with the release before: packages, metadata, chart, and the command `bin/meshwright`.

    The folder is made by the first call for an archive, and then stays, so that Python's bytecode is compiled
    once. Several processes may call this at the same time. Raises ArchiveError as `before` does.
    """
    version = before()
    content = (ARCHIVES / f"{version}{_SUFFIX}").read_bytes()
    # The digest is in the name, because a changed archive must not find the folder of the one before.
    folder = UNPACKED / f"{version}-{hashlib.sha256(content).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    UNPACKED.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=UNPACKED, prefix=".draft-"))
    try:
        write_tree(unpack(lzma.decompress(content)), draft)
        _install(draft, folder)
        draft.chmod(0o755)  # commands of other users, such as a proxy's, start here too
        draft.rename(folder)
    except OSError:
        if not folder.is_dir():  # another process may have made it in the meantime
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _install(draft: Path, folder: Path) -> None:
    """Write the metadata of the distribution, and the command, for a release that will be in `folder`."""
    project = tomllib.loads((draft / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = draft / f"{project['name']}-{project['version']}.dist-info"
    metadata.mkdir()
    head = f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {project['version']}\n"
    required = (f"Requires-Dist: {item}\n" for item in project["dependencies"])
    (metadata / "METADATA").write_text(head + "".join(required))
    groups = project.get("entry-points", {}).items()
    points = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in groups
    )
    (metadata / "entry_points.txt").write_text("\n".join(points))
    command = draft / "bin" / "meshwright"
    command.parent.mkdir()
    command.write_text(_COMMAND.format(folder=folder, python=sys.executable))
    command.chmod(0o755)


def main() -> None:
    """Write the archive of the version in the first argument."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.release_before VERSION")
    version = sys.argv[1]
    try:
        content = archive(ROOT, version)
    except (ArchiveError, SourceError) as error:
        sys.exit(f"release_before: {error}")
    path = ARCHIVES / f"{version}{_SUFFIX}"
    path.write_bytes(content)
    print(f"{path.relative_to(ROOT)}: {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
