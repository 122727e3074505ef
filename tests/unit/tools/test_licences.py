"""Tests of the licences of a release's packages: all are listed and all may be distributed."""

import re

from tools.dockerfile import FILE
from tools.licences import LOCKS, WRITTEN, is_allowed, licence, locked, pins

ROW = re.compile(r"^\| ([a-z0-9._-]+) \| (\d\S*) \| (.+) \|$", re.MULTILINE)


def test_every_pinned_package_is_listed_with_its_licence() -> None:
    """The list is outdated if a package was added or upgraded without `make licences`."""
    listed = {name: (version, answer) for name, version, answer in ROW.findall(WRITTEN.read_text("utf-8"))}
    assert listed == {name: (version, licence(name)) for name, version in locked().items()}
    assert len(listed) > 40


def test_every_licence_is_compatible_with_the_project() -> None:
    """A licence that requires more than notices needs a decision and a change of tools/licences.py."""
    assert not {name for name, _, answer in ROW.findall(WRITTEN.read_text("utf-8")) if not is_allowed(answer)}
    assert [is_allowed(item) for item in ("GPL-3.0-only", "MIT OR GPL-3.0-only", "", "?")] == [False] * 4


def test_dockerfile_installs_only_the_listed_lock_files() -> None:
    """Packages of other lock files would have no listed licence; those in `/build` are in no image."""
    named = re.findall(r"(?<!--target /build )-r requirements/(\S+)", FILE.read_text("utf-8"))
    assert sorted(named) == sorted(LOCKS)


def test_pins_are_read_with_markers_and_hashes() -> None:
    """The lock files of uv have this form."""
    text = "cffi==2.1.1 ; implementation != 'PyPy' \\\n    --hash=sha256:ab\nh2==4.4.1 \\\n    --hash=x\n"
    assert pins(text) == {"cffi": "2.1.1", "h2": "4.4.1"}
