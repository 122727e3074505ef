"""Tests of connections as address and credentials change, with a TLS server that records its clients."""

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from meshwright.kube.api import Api
from meshwright.kube.connection.access import Access, Plugin, Server, User
from meshwright.kube.connection.connection import Connection, find_connection
from meshwright.kube.errors import ApiError, ApiUnreachable, ConfigError, KubeError
from tests.unit.kube.connection.test_exec_plugin import gives, plugin
from tests.unit.kube.connection.test_kubeconfig import config, written
from tests.unit.kube.scripted_api import (
    SERVICES,
    Line,
    ReceivedRequest,
    ScriptedServer,
    api_at,
    api_of,
    refusing,
    service,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class TokenCheckingServer(ScriptedServer):
    """A server that accepts the tokens in `good` and client certificates, and refuses other clients."""

    def __init__(self, keys: Path, *good: str) -> None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(keys / "ca.crt"))
        tls.load_cert_chain(keys / "server.crt", keys / "server.key")
        tls.verify_mode = ssl.CERT_OPTIONAL
        super().__init__(self._see, tls=tls)
        self.good = set(good)
        self.seen: list[str] = []

    async def _see(self, asked: ReceivedRequest, line: Line) -> None:
        shown = line.writer.get_extra_info("peercert") or {}
        names = [value for part in shown.get("subject", ()) for key, value in part if key == "commonName"]
        token = dict(asked.headers).get("authorization", "")
        self.seen.append("".join(names) or token)
        if names or token in self.good:
            return await line.answer(service("cart", 5))
        return await refusing(401, "Unauthorized", "Unauthorized")(asked, line)


async def _get(api: Api) -> None:
    assert (await api.get(SERVICES, "shop", "cart"))["metadata"]["name"] == "cart"


async def test_replaced_token_file_is_read_for_each_request(keys: Path, tmp_path: Path) -> None:
    """A Pod's token is replaced every hour. A missing file is an error."""
    file = tmp_path / "token"
    file.write_text("one\n", "utf-8")
    user = User(token_file=file)
    async with (
        TokenCheckingServer(keys, "Bearer one", "Bearer two") as played,
        api_of(played, user, keys / "ca.crt") as api,
    ):
        await _get(api)
        file.write_text("two\n", "utf-8")
        await _get(api)
        file.unlink()
        with pytest.raises(ConfigError, match=f"{file} cannot be read: No such file or directory"):
            await _get(api)
    assert played.seen == ["Bearer one", "Bearer two"]


async def test_replaced_certificate_files_are_used_once_they_match(keys: Path, tmp_path: Path) -> None:
    """The files are examined for each request.

    While certificate and key do not match, the previous pair is used.
    """

    def put(certificate: str, key: str) -> None:
        for name, source in (("crt", f"{certificate}.crt"), ("key", f"{key}.key")):
            new = tmp_path / "new"
            new.write_bytes((keys / source).read_bytes())
            new.rename(tmp_path / f"me.{name}")

    put("ann", "ann")
    user = User(certificate=tmp_path / "me.crt", key=tmp_path / "me.key")
    async with TokenCheckingServer(keys) as played, api_of(played, user, keys / "ca.crt") as api:
        await _get(api)
        put("bob", "ann")
        await _get(api)
        put("bob", "bob")
        await _get(api)
        await _get(api)
    assert played.seen == ["ann", "ann", "bob", "bob"]


async def test_client_certificate_within_the_kubeconfig_is_used(keys: Path) -> None:
    """The data of the kubeconfig are shown in the TLS handshake."""
    user = User(certificate=(keys / "ann.crt").read_bytes(), key=(keys / "ann.key").read_bytes())
    ca = (keys / "ca.crt").read_bytes()
    async with TokenCheckingServer(keys) as played, api_of(played, user, ca) as api:
        await _get(api)
    assert played.seen == ["ann"]


class _Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def _counting(folder: Path, *outputs: str) -> Plugin:
    """Return a plug-in that prints the outputs one after the other, and then repeats the last one."""
    folder.mkdir(exist_ok=True)
    for number, output in enumerate(outputs, start=1):
        (folder / f"out{number}").write_text(output, "utf-8")
    count = folder / "count"
    script = f"""n=$(($(cat {count} 2>/dev/null || echo 0) + 1)); echo $n > {count}
        test $n -gt {len(outputs)} && n={len(outputs)}
        cat {folder}/out$n"""
    return plugin(folder, script)


async def test_plugin_runs_again_only_after_its_credential_expires(keys: Path, tmp_path: Path) -> None:
    """A credential without an expiry time is not renewed."""
    until = (NOW + timedelta(minutes=5)).isoformat()
    made = _counting(tmp_path, gives(token="one", expirationTimestamp=until), gives(token="two"))
    clock = _Clock()
    async with TokenCheckingServer(keys, "Bearer one", "Bearer two") as played:
        access = Access(Server("x", played.url, keys / "ca.crt"), User(plugin=made))
        async with Api(Connection(lambda: access, clock)) as api:
            for minutes in (0, 4, 5, 500):
                clock.now = NOW + timedelta(minutes=minutes)
                await _get(api)
    assert played.seen == ["Bearer one", "Bearer one", "Bearer two", "Bearer two"]


async def test_plugin_runs_again_once_after_a_refused_token(keys: Path, tmp_path: Path) -> None:
    """A token that is revoked early is replaced within the same request, once."""
    made = _counting(tmp_path, gives(token="one"), gives(token="two"))
    async with (
        TokenCheckingServer(keys, "Bearer one", "Bearer two") as played,
        api_of(played, User(plugin=made), keys / "ca.crt") as api,
    ):
        await _get(api)
        played.good = {"Bearer two"}
        await _get(api)
        played.good = set()
        with pytest.raises(
            ApiError,
            match="cannot get services shop/cart: the API server rejects the credentials",
        ):
            await _get(api)
    assert played.seen == ["Bearer one", "Bearer one", "Bearer two", "Bearer two"]
    assert (tmp_path / "count").read_text().strip() == "2"


async def test_plugin_runs_rarely_while_its_tokens_are_refused(keys: Path, tmp_path: Path) -> None:
    """A server may refuse thousands of requests, so runs are at least ten seconds apart.

    A new kubeconfig has its plug-in run at once.
    """
    made, other = (_counting(tmp_path / name, gives(token=name)) for name in ("one", "two"))
    clock, users = _Clock(), [User(plugin=made)]

    def count(name: str) -> int:
        return int((tmp_path / name / "count").read_text())

    async with TokenCheckingServer(keys) as played:
        connection = Connection(lambda: Access(Server("x", played.url, keys / "ca.crt"), users[0]), clock)
        async with Api(connection) as api:
            for seconds, runs in ((0, 2), (1, 2), (9, 2), (11, 3), (12, 3)):
                clock.now = NOW + timedelta(seconds=seconds)
                with pytest.raises(ApiError, match="the API server rejects the credentials"):
                    await _get(api)
                assert count("one") == runs
            users[0] = User(plugin=other)  # a new kubeconfig
            played.good = {"Bearer two"}
            await _get(api)
    assert (count("one"), count("two")) == (3, 1)


async def test_certificate_of_a_plugin_is_used_in_the_handshake(keys: Path, tmp_path: Path) -> None:
    """A new certificate is used for a new connection."""

    def given(name: str, **more: str) -> str:
        certificate, key = ((keys / f"{name}.{item}").read_text("utf-8") for item in ("crt", "key"))
        return gives(clientCertificateData=certificate, clientKeyData=key, **more)

    made = _counting(tmp_path, given("ann", expirationTimestamp=NOW.isoformat()), given("bob"))
    clock = _Clock()
    clock.now = NOW - timedelta(minutes=1)
    async with TokenCheckingServer(keys) as played:
        access = Access(Server("x", played.url, keys / "ca.crt"), User(plugin=made))
        async with Api(Connection(lambda: access, clock)) as api:
            await _get(api)
            clock.now = NOW
            await _get(api)
    assert played.seen == ["ann", "bob"]


async def test_failing_plugin_is_not_run_for_each_request(keys: Path, tmp_path: Path) -> None:
    """The failure is remembered for about ten seconds, because all requests wait for the plug-in."""
    count = tmp_path / "count"
    made = plugin(tmp_path, f"echo x >> {count}; echo no >&2; exit 1")
    clock = _Clock()
    access = Access(Server("x", "https://127.0.0.1:1", keys / "ca.crt"), User(plugin=made))
    connection = Connection(lambda: access, clock)
    for seconds in (0, 1, 9, 11):
        clock.now = NOW + timedelta(seconds=seconds)
        with pytest.raises(ConfigError, match="failed with exit status 1: no"):
            await connection.ready()
    assert count.read_text("utf-8").count("x") == 2


async def test_kubeconfig_is_read_again_after_a_refusal(keys: Path, tmp_path: Path) -> None:
    """A new login takes effect without a restart."""
    async with TokenCheckingServer(keys, "Bearer new") as played:
        cluster = {"server": played.url, "certificate-authority": str(keys / "ca.crt")}
        file = written(tmp_path / "config", config(cluster=cluster, user={"token": "old"}))
        async with Api(find_connection(file, "")) as api:
            assert (api.name, api.server) == ("prod", played.url)
            with pytest.raises(ApiError):
                await _get(api)
            written(file, config(cluster=cluster, user={"token": "new"}))
            await _get(api)
    assert played.seen == ["Bearer old", "Bearer old", "Bearer new"]


async def test_credentials_are_never_sent_without_tls(tmp_path: Path) -> None:
    """As with kubectl, a server without TLS gets no credentials, and a plug-in is not even run.

    `kubectl proxy`, a common server without TLS, adds its own credentials.
    """
    made = plugin(tmp_path, f"echo '{gives(token='t')}'; touch {tmp_path}/called")
    for user in (User(token="t"), User(basic=("a", "b")), User(plugin=made)):
        async with ScriptedServer(refusing(404, "NotFound", "x")) as played, api_of(played, user) as api:
            with pytest.raises(ApiError):
                await _get(api)
        assert "authorization" not in dict(played.asked[0].headers)
    assert not (tmp_path / "called").exists()


async def test_untrusted_server_gets_no_credentials(keys: Path, tmp_path: Path) -> None:
    """A server of another CA or with another name is refused with the reason.

    `server_name` and `insecure` are respected.
    """
    user = User(token="t")
    async with TokenCheckingServer(keys, "Bearer t") as played:
        async with api_of(played, user, b"") as api:
            with pytest.raises(
                ApiUnreachable, match=r"the certificate of the server is not trusted: .*certificate"
            ):
                await _get(api)
        for name, good in (("kubernetes", True), ("elsewhere", False)):
            async with api_at(Server("x", played.url, keys / "ca.crt", server_name=name), user) as api:
                if good:
                    await _get(api)
                else:
                    with pytest.raises(
                        ApiUnreachable,
                        match="the certificate of the server is not trusted: Hostname mismatch",
                    ):
                        await _get(api)
        async with api_at(Server("x", played.url, insecure=True), user) as api:
            await _get(api)
    assert played.seen == ["Bearer t", "Bearer t"]


@contextlib.asynccontextmanager
async def tunnelling(asked: list[str]) -> AsyncIterator[str]:
    """Run a proxy that connects to the requested address and forwards data both ways; yield its URL."""
    tasks = set[asyncio.Task[None]]()

    async def passed(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head.split(" ")[1])
        host, _, port = asked[-1].rpartition(":")
        there, onward = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(passed(reader, onward), passed(there, writer))
        finally:
            for stream_writer in (writer, onward):
                stream_writer.transport.abort()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(tunnel(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("name", ["", "kubernetes", "elsewhere"])
async def test_proxy_is_a_tunnel_and_the_servers_certificate_is_verified(keys: Path, name: str) -> None:
    """The proxy sees neither requests nor credentials."""
    asked: list[str] = []
    async with TokenCheckingServer(keys, "Bearer t") as played, tunnelling(asked) as proxy:
        server = Server("x", played.url, keys / "ca.crt", server_name=name, proxy=proxy)
        async with api_at(server, User(token="t")) as api:
            if name == "elsewhere":
                with pytest.raises(
                    ApiUnreachable, match="the certificate of the server is not trusted: Hostname mismatch"
                ):
                    await _get(api)
            else:
                await _get(api)
    assert asked == [played.url.removeprefix("https://")]
    assert played.seen == ([] if name == "elsewhere" else ["Bearer t"])


async def test_pods_token_is_read_after_its_folder_is_replaced(
    keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kubelet replaces the ServiceAccount's files by another folder behind a link."""
    account = tmp_path / "account"
    account.mkdir()
    for name, token in (("..1", "one"), ("..2", "two")):
        (account / name).mkdir()
        (account / name / "token").write_text(token, "utf-8")
        (account / name / "ca.crt").write_bytes((keys / "ca.crt").read_bytes())
    (account / "..data").symlink_to("..1")
    for name in ("token", "ca.crt"):
        (account / name).symlink_to(f"..data/{name}")
    async with TokenCheckingServer(keys, "Bearer one", "Bearer two") as played:
        port = played.url.rpartition(":")[2]
        _environment(monkeypatch, tmp_path, KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT=port)
        async with Api(find_connection(None, "", account)) as api:
            await _get(api)
            (account / "..new").symlink_to("..2")
            (account / "..new").rename(account / "..data")
            await _get(api)
    assert played.seen == ["Bearer one", "Bearer two"]


async def test_impersonation_headers_are_sent_one_for_each_group(keys: Path) -> None:
    """User and groups are sent in the order of the kubeconfig."""
    acting = (("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
    user = User(token="t", acting_as=acting)
    async with TokenCheckingServer(keys, "Bearer t") as played, api_of(played, user, keys / "ca.crt") as api:
        await _get(api)
    sent = [header for header in played.asked[0].headers if header[0].startswith("impersonate")]
    assert sent == [("impersonate-user", "jane"), ("impersonate-group", "a"), ("impersonate-group", "b")]


@pytest.mark.parametrize(
    ("ca", "certificate", "key", "said"),
    [
        (b"no PEM", b"", b"", "certificate-authority-data must contain certificates in PEM"),
        (Path("/none/ca.crt"), b"", b"", "/none/ca.crt cannot be read: No such file or directory"),
        (
            b"",
            b"no PEM",
            b"no PEM",
            "client-certificate-data and client-key-data must be a certificate and its key in PEM, ",
        ),
    ],
)
async def test_malformed_certificates_are_an_error_with_the_field(
    ca: Path | bytes, certificate: bytes, key: bytes, said: str
) -> None:
    """The error names the expected content."""
    access = Access(Server("x", "https://127.0.0.1:1", ca), User(certificate=certificate, key=key))
    with pytest.raises(ConfigError) as caught:
        await Connection(lambda: access).ready()
    assert str(caught.value).startswith(said)


async def test_encrypted_key_is_an_error(tmp_path: Path, keys: Path) -> None:
    """No password is requested on the terminal."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key((keys / "ann.key").read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    access = Access(
        Server("x", "https://127.0.0.1:1"), User(certificate=(keys / "ann.crt").read_bytes(), key=locked)
    )
    with pytest.raises(ConfigError, match="the key must not have a password"):
        await Connection(lambda: access).ready()


def _environment(monkeypatch: pytest.MonkeyPatch, home: Path, **more: str) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, item in {"HOME": str(home), **more}.items():
        monkeypatch.setenv(name, item)


def _named(name: str, **more: Any) -> dict[str, Any]:
    answer = config(**more)
    answer["clusters"][0]["name"] = answer["contexts"][0]["context"]["cluster"] = name
    return answer


def test_kubeconfig_is_found_in_the_documented_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The order is: the named file, the cluster of the pod, $KUBECONFIG, and ~/.kube/config.

    A named context excludes the pod's cluster.
    """
    account = tmp_path / "account"
    pod = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    path = written(tmp_path / "told", _named("told"))
    one = written(tmp_path / "one", _named("one"))
    written(tmp_path / ".kube" / "config", _named("home"))
    paths = os.pathsep.join([str(tmp_path / "missing"), str(one), ""])

    _environment(monkeypatch, tmp_path, KUBECONFIG=paths, **pod)
    assert find_connection(path, "", account).name == "told"
    assert find_connection(None, "", account).name == "one", "there is no token"
    account.mkdir()
    (account / "token").write_text("t", "utf-8")
    (account / "ca.crt").write_text("", "utf-8")
    assert (find_connection(None, "", account).name, find_connection(None, "", account).server) == (
        "in-cluster",
        "https://[fd00::1]:443",
    )
    assert find_connection(None, "day", account).name == "one", "a context is a kubeconfig's"
    _environment(monkeypatch, tmp_path, **pod | {"KUBERNETES_SERVICE_PORT": "tcp://10.96.0.1:443"})
    with pytest.raises(ConfigError, match="_PORT must be the address and port of the API server"):
        find_connection(None, "", account)
    _environment(monkeypatch, tmp_path, KUBECONFIG=paths)
    assert find_connection(None, "", account).name == "one"
    _environment(monkeypatch, tmp_path)
    assert find_connection(None, "", account).name == "home"


def test_missing_kubeconfig_is_an_error_with_the_searched_paths(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The message also names the option `--kubeconfig`."""
    _environment(monkeypatch, tmp_path)
    with pytest.raises(ConfigError, match=r"~/\.kube/config does not exist; name one with --kubeconfig$"):
        find_connection(None, "", tmp_path)
    _environment(monkeypatch, tmp_path, KUBECONFIG=f"{tmp_path}/a:{tmp_path}/b")
    with pytest.raises(ConfigError, match=f"{tmp_path}/a, {tmp_path}/b does not exist"):
        find_connection(None, "", tmp_path)


async def test_token_is_neither_in_representations_nor_in_errors(keys: Path, tmp_path: Path) -> None:
    """Both may be logged."""
    access = Access(Server("x", "https://127.0.0.1:1", keys / "ca.crt"), User(token="s3cr3t"))
    connection = Connection(lambda: access)
    assert "s3cr3t" not in repr(await connection.ready())
    async with Api(connection) as api:
        with pytest.raises(KubeError) as caught:
            await _get(api)
    assert str(caught.value) == "cannot get services shop/cart at https://127.0.0.1:1: connection refused"
    assert "s3cr3t" not in str(caught.value)


async def test_password_of_a_proxy_is_neither_in_representations_nor_in_errors(keys: Path) -> None:
    """A proxy's URL may hold a password, and its parsing may fail."""
    access = Access(Server("x", "https://127.0.0.1:1", keys / "ca.crt", proxy="http://me:s3cr3t@:80"), User())
    connection = Connection(lambda: access)
    assert "s3cr3t" not in repr(await connection.ready())
    async with Api(connection) as api:
        with pytest.raises(KubeError) as caught:
            await _get(api)
    assert "s3cr3t" not in str(caught.value)
