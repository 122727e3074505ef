"""Small real file systems for tests, which can be full, run out of files, or be read-only."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tools.forked_cli import Mounted, Typed


@dataclass(frozen=True)
class Volume:
    """A file system that is mounted only in its own namespace.

    A program that is started by `enter` finds it at `inside`; `path` leads there from any process (but not
    SQLite, which resolves the link in it by itself).
    """

    holder: int
    path: Path
    inside: Path = Path("/mnt")

    @property
    def enter(self) -> tuple[str, ...]:
        """Return the command prefix for programs that must see it."""
        return ("nsenter", f"--mount={self._mounts}", "--")

    def commands(self, typed: Typed) -> Mounted:
        """Return commands that see it."""
        return Mounted(typed, self._mounts, self.enter)

    @property
    def _mounts(self) -> Path:
        return Path(f"/proc/{self.holder}/ns/mnt")

    @property
    def _filler(self) -> Path:
        return self.path / "filler"

    def fill(self) -> None:
        """Write until no further byte can be written; space that others free meanwhile needs another call."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass
        assert os.statvfs(self.path).f_bavail == 0

    def take_all_files(self) -> None:
        """Make files until no more can be made."""
        with contextlib.suppress(OSError):
            (self.path / "files").mkdir(exist_ok=True)
            while True:
                (self.path / "files" / uuid.uuid4().hex).touch()
        assert os.statvfs(self.path).f_favail == 0

    def fail(self) -> None:
        """Make it read-only under the programs that use it, like ext4 when its device fails."""
        mount = (*self.enter, "mount", "-o", "remount,abort", str(self.inside))
        subprocess.run(mount, check=True, capture_output=True)
        with pytest.raises(OSError, match="Read-only file system"):
            self._filler.touch()

    def free(self) -> None:
        """Remove the files of `fill` and `take_all_files`."""
        self._filler.unlink(missing_ok=True)
        shutil.rmtree(self.path / "files", ignore_errors=True)


@contextlib.contextmanager
def volume(size: str = "4m", files: int = 1000, image: Path | None = None) -> Iterator[Volume]:
    """Mount a volume in a namespace that ends with the block; skip the test if that is not allowed.

    It is a tmpfs, or with `image` an ext4 in that file.
    """
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a file system that is full needs root and unshare(1)")
    mount = f"mount -t tmpfs -o size={size},nr_inodes={files},mode=0700 tmpfs /mnt"
    if image is not None:
        mount = f"truncate -s 16M {image} && mkfs.ext4 -q {image} && mount -o loop {image} /mnt"
    holder = subprocess.Popen(
        [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            f"{mount} && echo && exec sleep infinity",
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        if not holder.stdout.readline():
            pytest.skip("no file system can be mounted here")
        yield Volume(holder.pid, Path(f"/proc/{holder.pid}/root/mnt"))
    finally:
        holder.kill()
        holder.communicate()


@contextlib.contextmanager
def short_files(limit: int) -> Iterator[None]:
    """Limit the size of files that this process writes: a longer write fails (File too large)."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
