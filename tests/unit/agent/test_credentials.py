"""The three files: read and judged, put where Envoy reads them, watched."""

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
from tests.unit.agent.credentials_of import write_credentials


def test_what_fits_is_read(tmp_path: Path) -> None:
    """Name, trust domain and serial are what the certificates say; the key does not show."""
    serial = write_credentials(tmp_path, tmp_path / "out")
    found = read(tmp_path / "out")
    assert (str(found.name), found.trust_domain, found.serial) == ("u.s.n", "cluster.local", serial)
    assert found.digest == digest(tmp_path / "out")
    assert "PRIVATE" not in repr(found)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("proxy.key", None, "cannot read .*proxy.key: No such file"),
        ("proxy.key", "other", "do not belong together: the private key does not belong to the certificate"),
        ("proxy.pem", "", "do not belong together: the file of the certificate has no readable certificate"),
        ("ca.pem", "", "ca.pem is not a certificate in PEM"),
        ("ca.pem", "foreign", "was not issued by a CA in"),
        ("proxy.pem", "server", "do not belong together"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, file: str, content: str | None, words: str) -> None:
    """The message says which file and why, and holds nothing of a key."""
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
def test_what_the_library_reads_and_envoy_does_not_is_refused(
    tmp_path: Path, file: str, spoil: Callable[[bytes], bytes]
) -> None:
    """As Envoy was shown each: it says `no start line`, or `bad end line`."""
    out = tmp_path / "out"
    write_credentials(tmp_path, out)
    (out / file).write_bytes(spoil((out / file).read_bytes()))
    with pytest.raises(CredentialsError, match=f"^Envoy cannot read {out / file}: each"):
        read(out)


def test_lines_as_long_as_envoys_buffer_are_refused(tmp_path: Path) -> None:
    """One that fills it whole is followed by an empty one, as Envoy sees it."""
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
def test_what_envoy_reads_is_good_however_it_is_written(
    tmp_path: Path, other: Callable[[bytes], bytes]
) -> None:
    """Line ends of another system, text between certificates, lines of other lengths."""
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
def test_what_others_can_get_at_is_refused_unless_that_is_meant(
    tmp_path: Path, file: str, mode: int, words: str
) -> None:
    """A key that they read, and files that they put in the place of ours; what is public they may read."""
    out = tmp_path / "out"
    write_credentials(tmp_path, out)
    out.chmod(0o755)
    read(out)
    (out / file).chmod(mode)
    with pytest.raises(CredentialsError) as refused:
        read(out)
    said = words.format(path=out / file)
    assert str(refused.value) == f"{said}, or use --shared-credentials if other users may have access"
    assert read(out, shared=True).digest == digest(out)


def test_certificates_change_by_one_rename(tmp_path: Path) -> None:
    """A link leads to a directory of the new ones; the old directory is gone, and all of it is private."""
    runtime = RuntimeDirectory(tmp_path / "run")
    runtime.prepare()
    serials = []
    for _ in range(2):
        serials.append(write_credentials(tmp_path, tmp_path / "out"))
        runtime.put_credentials(read(tmp_path / "out"))
        assert read(runtime.credential("")).serial == serials[-1]
    assert serials[0] != serials[1]
    (current,) = [each for each in runtime.certificates.iterdir() if not each.is_symlink()]
    assert {oct(each.stat().st_mode & 0o777) for each in (runtime.root, runtime.certificates, current)} == {
        "0o700"
    }
    assert {oct(each.stat().st_mode & 0o777) for each in current.iterdir()} == {"0o600"}
    assert {each.name for each in runtime.certificates.iterdir()} == {"current", current.name}


def test_an_override_is_laid_over_a_bootstrap() -> None:
    """Objects are merged, all else is replaced; what is no object is refused."""
    text = json.dumps({"node": {"id": "u", "cluster": "c"}, "list": [1]})
    assert json.loads(merged(text, '{"node": {"id": "v", "locality": {"zone": "z"}}, "list": [2]}')) == {
        "node": {"id": "v", "cluster": "c", "locality": {"zone": "z"}},
        "list": [2],
    }
    assert merged(text, None) == text
    with pytest.raises(ValueError, match="must be a JSON object"):
        merged(text, "[]")


def _swap(folder: Path, number: int) -> None:
    """Have the file by way of a directory's link, and swap that, as Kubernetes does it."""
    (folder / f"..{number}").mkdir(exist_ok=True)
    (folder / f"..{number}" / "file").write_text(str(number))
    (folder / ".new").symlink_to(f"..{number}")
    (folder / ".new").replace(folder / "..data")
    if number == 1:
        (folder / "file").symlink_to("..data/file")


def _write(folder: Path, number: int) -> None:
    """Write the file where it stands."""
    (folder / "file").write_text(str(number))


def _edit(folder: Path, number: int) -> None:
    """Replace the file, as editors do."""
    (folder / ".file.swp").write_text(str(number))
    (folder / ".file.swp").replace(folder / "file")


@pytest.mark.parametrize("change", [_swap, _write, _edit])
async def test_a_change_is_noticed_by_its_event(tmp_path: Path, change: Callable[[Path, int], None]) -> None:
    """Long before the next look, whichever way it is made."""
    change(tmp_path, 1)
    found = changes([tmp_path], (tmp_path / "file").read_text, look_seconds=3600, quiet_seconds=0.02)
    async with asyncio.timeout(60):
        assert await anext(found) == "1"
        noticed = asyncio.ensure_future(anext(found))
        # Nobody says when the watch has begun: what was changed before that has no event.
        for number in itertools.count(2):
            change(tmp_path, number)
            if (await asyncio.wait({noticed}, timeout=0.2))[0]:
                break
        assert int(noticed.result()) > 1
    await found.aclose()


async def test_a_directory_in_the_place_of_another_is_watched(tmp_path: Path) -> None:
    """And one that comes later, once it was looked for."""
    watched = tmp_path / "watched"
    found = changes([watched], lambda: _text(watched / "file"), look_seconds=0.05, quiet_seconds=0.02)
    async with asyncio.timeout(60):
        assert await anext(found) == ""
        for number in ("1", "2"):
            (tmp_path / number).mkdir()
            (tmp_path / number / "file").write_text(number)
            if watched.exists():
                watched.rename(tmp_path / "old")
            (tmp_path / number).rename(watched)
            assert await anext(found) == number
    await found.aclose()


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


async def test_changes_are_noticed_by_looking(tmp_path: Path) -> None:
    """Those without an event, too: behind a link into a place that nobody watches."""
    watched, elsewhere = tmp_path / "watched", tmp_path / "elsewhere"
    for number in (1, 2):
        (watched / f"..{number}").mkdir(parents=True)
        (watched / f"..{number}" / "file").write_text(str(number))
    elsewhere.mkdir()
    (elsewhere / "file").write_text("3")
    (watched / "..data").symlink_to("..1")
    (watched / "file").symlink_to("..data/file")
    found = changes([watched], (watched / "file").read_text, look_seconds=0.05, quiet_seconds=0.02)
    async with asyncio.timeout(60):
        assert await anext(found) == "1"
        (watched / ".new").symlink_to("..2")
        (watched / ".new").replace(watched / "..data")
        assert await anext(found) == "2"
        (watched / ".new").symlink_to(elsewhere)
        (watched / ".new").replace(watched / "..data")
        assert await anext(found) == "3"
        (elsewhere / "new").write_text("4")
        (elsewhere / "new").replace(elsewhere / "file")  # no event: nobody watches there
        assert await anext(found) == "4"
    await found.aclose()
