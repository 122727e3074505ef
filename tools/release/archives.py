"""Tar archives whose bytes are decided by the files and a time."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_LEVEL: Final = 6
"""Level of gzip. Another level changes the bytes of every release."""


@dataclass(frozen=True, slots=True)
class File:
    """Content of a file, and whether it may be executed. A release keeps nothing else of a file's mode."""

    content: bytes
    executable: bool = False

    @property
    def text(self) -> str:
        """Return the content as text. Raises UnicodeDecodeError for other content than UTF-8."""
        return self.content.decode("utf-8")


Files = Mapping[str, File]
"""Files by path, for example `deploy/chart/meshwright/Chart.yaml`."""


def pack(files: Files, folder: str, time: int) -> bytes:
    """Return a tar.gz of files: the archive of `tar`, with `time` in gzip's header too."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=time, compresslevel=_LEVEL) as out:
        out.write(tar(files, folder, time))
    return packed.getvalue()


def tar(files: Files, folder: str, time: int) -> bytes:
    """Return a tar archive of files, in the order of the mapping.

    Every path is below `folder`, or at the top if `folder` is empty. Owner, group and mode are fixed, so that
    neither the user nor the umask of a build matters. `time` of each file is in seconds since 1970.
    """
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, file in files.items():
            member = tarfile.TarInfo(f"{folder}/{path}" if folder else path)
            member.size, member.mtime = len(file.content), time
            member.mode = 0o755 if file.executable else 0o644
            archive.addfile(member, io.BytesIO(file.content))
    return written.getvalue()


def unpack(archive: bytes) -> dict[str, File]:
    """Return the files of a tar archive, by path. Raises ValueError for links and devices."""
    result: dict[str, File] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for member in opened:
            if member.isdir():
                continue
            content = opened.extractfile(member) if member.isfile() else None
            if content is None:
                raise ValueError(f"{member.name}: must be a file; a release has no links and no devices")
            result[member.name] = File(content.read(), bool(member.mode & 0o100))
    return result


def below(files: Files, folder: str) -> dict[str, File]:
    """Return the files below a folder, by their path within the folder, sorted."""
    start = f"{folder}/"
    return {path[len(start) :]: files[path] for path in sorted(files) if path.startswith(start)}
