"""Tests of a proxy's three credential files: checks, installation and watching."""

import asyncio
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from meshwright.agent.certificates import read
from meshwright.agent.credentials import CredentialsError, digest
from meshwright.agent.envoy.runtime import RuntimeDirectory, merged
from meshwright.agent.file_watch import changes
from tests.unit.agent.issued_credentials import write_credentials


def test_matching_files_are_read(tmp_path: Path) -> None:
    """Name, trust domain and serial are read from the certificates, and the key is not in the repr."""
    serial = write_credentials(tmp_path, tmp_path / "out")
    credentials = read(tmp_path / "out")
    assert (str(credentials.name), credentials.trust_domain, credentials.serial) == (
        "u.s.n",
        "cluster.local",
        serial,
    )
    assert credentials.digest == digest(tmp_path / "out")
    assert "PRIVATE" not in repr(credentials)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("proxy.key", None, "cannot read .*proxy.key: No such file"),
        ("proxy.key", "other", "do not belong together: the private key does not belong to the certificate"),
        ("proxy.pem", "", "do not belong together: the file of the certificate lacks a readable certificate"),
        ("ca.pem", "", "ca.pem is not a certificate in PEM"),
        ("ca.pem", "foreign", "was not issued by a CA in"),
        ("proxy.pem", "server", "do not belong together"),
    ],
)
def test_mismatching_or_missing_file_is_refused(
    tmp_path: Path, file: str, content: str | None, words: str
) -> None:
    """The message names the file and the cause, and contains no part of a PEM file."""
    out = tmp_path / "out"
    write_credentials(tmp_path, out)
    write_credentials(tmp_path, tmp_path / "other")
    (tmp_path / "elsewhere").mkdir()
    write_credentials(tmp_path / "elsewhere", tmp_path / "foreign")
    match content:
        case None:
            (out / file).unlink()
        case "other" | "foreign":
            (out / file).write_bytes((tmp_path / content / file).read_bytes())
        case _:
            (out / file).write_text(content)
    with pytest.raises(CredentialsError, match=words) as refused:
        read(out)
    assert "BEGIN" not in str(refused.value)


@pytest.mark.parametrize("file", ["proxy.pem", "proxy.key", "ca.pem"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda pem: b"\xef\xbb\xbf" + pem,
        lambda pem: b" " + pem,
        lambda pem: b"the mesh's: " + pem,
        lambda pem: pem.rstrip() + b" (old)\n",
        lambda pem: pem.replace(b"\n", b"\r"),
        lambda pem: pem.replace(b"-----\n", b"-----\nComment: mine\n\n", 1),
    ],
)
def test_pem_that_envoy_cannot_read_is_refused(
    tmp_path: Path, file: str, spoil: Callable[[bytes], bytes]
) -> None:
    """Envoy refuses such a file with `no start line` or `bad end line`, although the library can read it."""
    out = tmp_path / "out"
    write_credentials(tmp_path, out)
    (out / file).write_bytes(spoil((out / file).read_bytes()))
    with pytest.raises(CredentialsError, match=f"^Envoy cannot read {out / file}: each"):
        read(out)


def test_pem_lines_as_long_as_envoy_s_buffer_are_refused(tmp_path: Path) -> None:
    """Envoy reads an empty line after a line that fills its buffer."""
    out = tmp_path / "out"
    write_credentials(tmp_path, out)
    (out / "ca.pem").write_bytes(_in_lines_of(253, (out / "ca.pem").read_bytes()))
    with pytest.raises(CredentialsError, match=r"^Envoy cannot read .*ca\.pem"):
        read(out)


@pytest.mark.parametrize(
    "other",
    [
        lambda pem: pem.replace(b"\n", b"\r\n"),
        lambda pem: b"subject=/CN=x\nBag Attributes: \xe4\n" + pem + b"\ntrailing\n",
        lambda pem: pem.rstrip(),
        lambda pem: pem.replace(b"\n", b" \n"),
        lambda pem: _in_lines_of(76, pem),
        lambda pem: _in_lines_of(9999, pem),
    ],
)
def test_pem_that_envoy_reads_is_accepted_in_any_form(
    tmp_path: Path, other: Callable[[bytes], bytes]
) -> None:
    """Other line ends, text between certificates and other line lengths are accepted."""
    out = tmp_path / "out"
    serial = write_credentials(tmp_path, out)
    for file in ("proxy.pem", "proxy.key", "ca.pem"):
        (out / file).write_bytes(other((out / file).read_bytes()))
    assert read(out).serial == serial


def _in_lines_of(length: int, pem: bytes) -> bytes:
    first, *body, last = pem.strip().split(b"\n")
    text = b"".join(body)
    return b"\n".join((first, *(text[at : at + length] for at in range(0, len(text), length)), last, b""))


@pytest.mark.parametrize(
    ("file", "mode", "words"),
    [
        ("proxy.key", 0o640, "{path} can be read by other users (its mode is 0640): chmod 600 {path}"),
        (
            "proxy.key",
            0o602,
            "{path} can be written by other users (its mode is 0602): chmod 600 {path}",
        ),
        ("", 0o777, "{path} can be written by other users (its mode is 0777): chmod 700 {path}"),
        ("ca.pem", 0o666, "{path} can be written by other users (its mode is 0666): chmod 644 {path}"),
    ],
)
def test_files_accessible_to_other_users_are_refused_unless_shared(
    tmp_path: Path, file: str, mode: int, words: str
) -> None:
    """A key that others can read, and files that others can replace, are refused.

    Public files may be readable.
    """
    out = tmp_path / "out"
    write_credentials(tmp_path, out)
    out.chmod(0o755)
    read(out)
    (out / file).chmod(mode)
    with pytest.raises(CredentialsError) as refused:
        read(out)
    text = words.format(path=out / file)
    assert str(refused.value) == f"{text}, or use --shared-credentials if other users may have access"
    assert read(out, shared=True).digest == digest(out)


def test_certificates_are_replaced_by_one_rename(tmp_path: Path) -> None:
    """A symbolic link leads to a directory with the new files.

    The old directory is deleted, and all files are private.
    """
    runtime = RuntimeDirectory(tmp_path / "run")
    runtime.prepare()
    serials = []
    for _ in range(2):
        serials.append(write_credentials(tmp_path, tmp_path / "out"))
        runtime.put_credentials(read(tmp_path / "out"))
        assert read(runtime.credential("")).serial == serials[-1]
    assert serials[0] != serials[1]
    (current,) = [path for path in runtime.certificates.iterdir() if not path.is_symlink()]
    assert {oct(path.stat().st_mode & 0o777) for path in (runtime.root, runtime.certificates, current)} == {
        "0o700"
    }
    assert {oct(path.stat().st_mode & 0o777) for path in current.iterdir()} == {"0o600"}
    assert {path.name for path in runtime.certificates.iterdir()} == {"current", current.name}


def test_override_is_merged_into_the_bootstrap() -> None:
    """Objects are merged and other values replaced; an override that is not an object is refused."""
    text = json.dumps({"node": {"id": "u", "cluster": "c"}, "list": [1]})
    assert json.loads(merged(text, '{"node": {"id": "v", "locality": {"zone": "z"}}, "list": [2]}')) == {
        "node": {"id": "v", "cluster": "c", "locality": {"zone": "z"}},
        "list": [2],
    }
    assert merged(text, None) == text
    with pytest.raises(ValueError, match="must be a JSON object"):
        merged(text, "[]")


def _swap(folder: Path, number: int) -> None:
    """Replace the file through a directory's symbolic link, as Kubernetes does."""
    (folder / f"..{number}").mkdir(exist_ok=True)
    (folder / f"..{number}" / "file").write_text(str(number))
    (folder / ".new").symlink_to(f"..{number}")
    (folder / ".new").replace(folder / "..data")
    if number == 1:
        (folder / "file").symlink_to("..data/file")


def _write(folder: Path, number: int) -> None:
    """Write the file in place."""
    (folder / "file").write_text(str(number))


def _edit(folder: Path, number: int) -> None:
    """Replace the file by a rename, as editors do."""
    (folder / ".file.swp").write_text(str(number))
    (folder / ".file.swp").replace(folder / "file")


@pytest.mark.parametrize("change", [_swap, _write, _edit])
async def test_change_is_noticed_by_its_event(tmp_path: Path, change: Callable[[Path, int], None]) -> None:
    """A change by any method is noticed long before the next poll."""
    change(tmp_path, 1)
    result = changes([tmp_path], (tmp_path / "file").read_text, look_seconds=3600, quiet_seconds=0.02)
    async with asyncio.timeout(60):
        assert await anext(result) == "1"
        noticed = asyncio.ensure_future(anext(result))
        # The start of the watch cannot be observed, and earlier changes have no event.
        for number in itertools.count(2):
            change(tmp_path, number)
            if (await asyncio.wait({noticed}, timeout=0.2))[0]:
                break
        assert int(noticed.result()) > 1
    await result.aclose()


async def test_replaced_or_later_directory_is_watched(tmp_path: Path) -> None:
    """A directory that is created later, or replaces the watched one, is watched."""
    watched = tmp_path / "watched"
    result = changes([watched], lambda: _text(watched / "file"), look_seconds=0.05, quiet_seconds=0.02)
    async with asyncio.timeout(60):
        assert await anext(result) == ""
        for number in ("1", "2"):
            (tmp_path / number).mkdir()
            (tmp_path / number / "file").write_text(number)
            if watched.exists():
                watched.rename(tmp_path / "old")
            (tmp_path / number).rename(watched)
            assert await anext(result) == number
    await result.aclose()


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


async def test_changes_without_an_event_are_noticed_by_polling(tmp_path: Path) -> None:
    """A change behind a link into an unwatched directory has no event, and is noticed by polling."""
    watched, elsewhere = tmp_path / "watched", tmp_path / "elsewhere"
    for number in (1, 2):
        (watched / f"..{number}").mkdir(parents=True)
        (watched / f"..{number}" / "file").write_text(str(number))
    elsewhere.mkdir()
    (elsewhere / "file").write_text("3")
    (watched / "..data").symlink_to("..1")
    (watched / "file").symlink_to("..data/file")
    result = changes([watched], (watched / "file").read_text, look_seconds=0.05, quiet_seconds=0.02)
    async with asyncio.timeout(60):
        assert await anext(result) == "1"
        (watched / ".new").symlink_to("..2")
        (watched / ".new").replace(watched / "..data")
        assert await anext(result) == "2"
        (watched / ".new").symlink_to(elsewhere)
        (watched / ".new").replace(watched / "..data")
        assert await anext(result) == "3"
        (elsewhere / "new").write_text("4")
        (elsewhere / "new").replace(elsewhere / "file")  # no event, because this directory is not watched
        assert await anext(result) == "4"
    await result.aclose()
