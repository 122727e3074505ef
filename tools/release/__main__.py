"""Command `python -m tools.release`: build a release of the last commit into `dist/`."""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tools.release import bill, chart, contexts, provenance, signatures, versions, wheels
from tools.release.artifacts import IMAGES, SUMS, Names, is_of_a_release
from tools.release.checksums import digest, sums
from tools.release.source import Source, SourceError, read_source

ROOT: Final = Path(__file__).resolve().parents[2]
ERRORS: Final = (
    *(bill.BillError, contexts.ContextError, signatures.SigningError, SourceError),
    *(versions.VersionsDisagree, wheels.WheelError),
)
NOT_SIGNED: Final = (
    f"NOT SIGNED: {SUMS}, the bill of materials and the provenance have no signatures, because no key is"
    f" configured. To sign, run `make release {signatures.VARIABLE}=FILE` with an SSH key"
    " (docs/extend/releasing.md)"
)


def built_files(source: Source, version: str, scratch: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file with a line in the provenance, in the order of Names.built."""
    names = Names(version)
    tree, out = scratch / "tree", scratch / "out"
    tree.mkdir()
    wheels.write_tree(source.files, tree)
    wheels.build_distributions(tree, out, source.time)
    wheels.check_distributions(tree, out / names.sdist, out / names.wheel)
    yield names.sdist, (out / names.sdist).read_bytes()
    wheel = (out / names.wheel).read_bytes()
    yield names.wheel, wheel
    yield names.requirements, source.files[bill.LOCK].content
    yield names.chart, chart.package(source.files, source.time)
    for image in IMAGES:
        yield names.context(image), contexts.context(source.files, image, version, source.time)
    packages = tuple(package.name for package in bill.locked(source.files[bill.LOCK].text))
    described = bill.Wheel(version, digest(wheel), source.time)
    yield names.bill, bill.bill(source.files, described, wheels.package_requirements(packages)).encode()


def release_files(source: Source, version: str, scratch: Path) -> dict[str, bytes]:
    """Return every file of a release but the signatures, by name."""
    built = dict(built_files(source, version, scratch))
    tools = wheels.tool_versions(source.files[wheels.BUILD_LOCK].text)
    about = provenance.statement(provenance.Build(version, source.commit, tools), source.files, built)
    summed = {**built, Names(version).provenance: about.encode()}
    return {**summed, SUMS: sums(summed).encode()}


def write_release(files: Mapping[str, bytes], out: Path) -> None:
    """Write a release into a folder, in place of the earlier release there. Other files stay."""
    out.mkdir(parents=True, exist_ok=True)
    for old in [path for path in out.iterdir() if is_of_a_release(path.name)]:
        old.unlink()
    for name, content in files.items():
        path = out / name
        path.write_bytes(content)
        path.chmod(0o644)


def release(root: Path, out: Path, key: Path | None) -> Iterator[str]:
    """Build a release, and sign it with `key`; yield the lines of the output."""
    # A bad key is reported before the build and not afterwards.
    by = None if key is None else signatures.fingerprint(key)
    source = read_source(root)
    version = versions.check(source.files)
    yield f"meshwright {version} from commit {source.commit}"
    with tempfile.TemporaryDirectory(prefix="meshwright-release-") as scratch:
        files = release_files(source, version, Path(scratch))
    signed = _signed(files, version, key)
    # Written at the end, so that an error leaves the earlier release complete.
    write_release({**files, **signed}, out)
    yield from (f"{digest(content)}  {out / name}" for name, content in files.items())
    by_key = f"signed with the key {by} for the namespace {signatures.NAMESPACE}"
    yield f"{by_key}: {', '.join(signed)}" if signed else NOT_SIGNED


def _signed(files: Mapping[str, bytes], version: str, key: Path | None) -> dict[str, bytes]:
    """Return the signatures of a release by name, or an empty mapping without a key."""
    if key is None:
        return {}
    with tempfile.TemporaryDirectory(prefix="meshwright-signing-") as scratch:
        return signatures.sign({name: files[name] for name in Names(version).signed}, key, Path(scratch))


def main() -> None:
    """Build a release, or exit with the message of the error."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the clone (default: the one of this program)"
    )
    parser.add_argument("--out", type=Path, help="the folder of the files (default: dist/ of the clone)")
    options = parser.parse_args()
    key = os.environ.get(signatures.VARIABLE)
    try:
        for line in release(
            options.root, options.out or options.root / "dist", Path(key).expanduser() if key else None
        ):
            print(line, flush=True)
    except ERRORS as error:
        sys.exit(f"release: {error}")


if __name__ == "__main__":
    main()
