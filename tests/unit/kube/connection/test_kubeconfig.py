"""Tests of kubeconfigs as kubectl reads them, and of errors for wrong ones."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from meshwright.kube.connection.access import Plugin, Server, User
from meshwright.kube.connection.kubeconfig import EXEC_VERSIONS, access, read
from meshwright.kube.errors import ConfigError

PEM = base64.b64encode(b"PEM").decode()
SECRET = "s3cr3t-t0k3n"


def config(**more: Any) -> dict[str, Any]:
    """Return a kubeconfig with one context; `more` replaces parts, such as its cluster and user."""
    cluster = {"server": "https://10.0.0.1:6443", "certificate-authority-data": PEM}
    user = {"token": SECRET}
    cluster, user = more.pop("cluster", cluster), more.pop("user", user)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "prod", "cluster": cluster}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "day", "context": {"cluster": "prod", "user": "me", "namespace": "x"}}],
        "current-context": "day",
        **more,
    }


def written(path: Path, said: object) -> Path:
    """Write a kubeconfig."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(said), "utf-8")
    return path


def test_current_context_is_used_unless_another_is_named(tmp_path: Path) -> None:
    """Cluster and user are those of the context."""
    answer = config()
    answer["clusters"].append({"name": "test", "cluster": {"server": "http://127.0.0.1:8001/"}})
    answer["contexts"].append({"name": "night", "context": {"cluster": "test"}})
    files = [read(written(tmp_path / "config", answer))]
    assert access(files).server == Server("prod", "https://10.0.0.1:6443", ca=b"PEM")
    assert access(files).user == User(token=SECRET)
    assert access(files, "night").server == Server("test", "http://127.0.0.1:8001")
    assert access(files, "night").user == User()


def test_first_file_that_defines_a_name_wins(tmp_path: Path) -> None:
    """The rule also holds for the current context. Relative paths start at the folder of their own file."""
    first = written(tmp_path / "a" / "config", {"users": [{"name": "me", "user": {"tokenFile": "mine"}}]})
    second = config(
        user={"token": "other"}, cluster={"server": "https://b:1", "certificate-authority": "ca.crt"}
    )
    third = config(cluster={"server": "https://c:1"}, **{"current-context": "never"})
    files = [
        read(first),
        read(written(tmp_path / "b" / "config", second)),
        read(written(tmp_path / "c", third)),
    ]
    result = access(files)
    assert result.server == Server("prod", "https://b:1", ca=tmp_path / "b" / "ca.crt")
    assert result.user == User(token_file=tmp_path / "a" / "mine")


def test_every_field_of_a_cluster_is_read(tmp_path: Path) -> None:
    """Examples are the proxy, the name in the certificate, and the disabled verification."""
    cluster = {
        "server": "https://10.0.0.1:6443/k8s/clusters/c-1/",
        "proxy-url": "http://proxy:3128",
        "tls-server-name": "kubernetes",
        "insecure-skip-tls-verify": True,
    }
    server = access([read(written(tmp_path / "config", config(cluster=cluster)))]).server
    url = "https://10.0.0.1:6443/k8s/clusters/c-1"
    assert server == Server(
        "prod", url, b"", insecure=True, server_name="kubernetes", proxy="http://proxy:3128"
    )


def test_every_field_of_a_user_is_read(tmp_path: Path) -> None:
    """Data precede files, and impersonation is always kept."""
    user: dict[str, Any] = {
        "client-certificate-data": PEM,
        "client-certificate": "never",
        "client-key": "/keys/me.key",
        "username": "me",
        "password": "pass:word",
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"example.com/Reason": ["x", "y"]},
    }
    assert access([read(written(tmp_path / "config", config(user=user)))]).user == User(
        basic=("me", "pass:word"),
        certificate=b"PEM",
        key=Path("/keys/me.key"),
        acting_as=(
            ("Impersonate-User", "jane"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Extra-example.com%2Freason", "x"),
            ("Impersonate-Extra-example.com%2Freason", "y"),
        ),
    )


def test_every_field_of_an_exec_plugin_is_read(tmp_path: Path) -> None:
    """A command with a slash is relative to the kubeconfig's folder.

    The cluster is passed if `provideClusterInfo` is true.
    """
    answer: dict[str, Any] = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "bin/login",
        "interactiveMode": "Never",
    }
    file = tmp_path / "config"
    assert access([read(written(file, config(user={"exec": answer})))]).user.plugin == Plugin(
        "client.authentication.k8s.io/v1", str(tmp_path / "bin" / "login")
    )
    answer |= {
        "command": "login",
        "args": ["-v"],
        "env": [{"name": "A", "value": "b"}],
        "installHint": "get it",
        "provideClusterInfo": True,
    }
    assert access([read(written(file, config(user={"exec": answer})))]).user.plugin == Plugin(
        "client.authentication.k8s.io/v1",
        "login",
        ("-v",),
        (("A", "b"),),
        {"server": "https://10.0.0.1:6443", "certificate-authority-data": PEM, "config": None},
        "get it",
    )


def _exec(**more: Any) -> dict[str, Any]:
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login", **more}
    return config(user={"exec": {name: item for name, item in answer.items() if item is not None}})


URL = "https://10.0.0.1:6443"
ASKS = "log in before, or use a plug-in without questions"
V1 = "client.authentication.k8s.io/v1"
WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "current-context is missing: name a context with --context; the file lacks contexts"),
    (
        config(**{"current-context": ""}),
        "current-context is missing: name a context with --context; the contexts are: day",
    ),
    (config(**{"current-context": "x"}), "context 'x' does not exist; the contexts are: day"),
    (config(contexts=[{"name": "day"}]), "contexts[day].context.cluster is missing"),
    (
        config(clusters=[]),
        "contexts[day].context.cluster is 'prod', which FILE does not define; defined: none",
    ),
    (config(users=[]), "contexts[day].context.user is 'me', which FILE does not define; defined: none"),
    (config(clusters={}), "clusters must be a list of mappings"),
    (config(users=[{"user": {}}]), "users[0].name is missing"),
    (config(cluster={}), f"CLUSTER.server must be a URL, for example {URL}"),
    (config(cluster={"server": "10.0.0.1"}), f"CLUSTER.server must be a URL, for example {URL}"),
    *(
        (config(cluster={"server": wrong}), f"CLUSTER.server must be a URL, for example {URL}")
        for wrong in (
            "https://10.0.0.1:99999",
            "https://10.0.0.1:a",
            "https://[::1",
            "https://:6443",
            "HTTPS://x",
        )
    ),
    (
        config(cluster={"server": f"https://me:{SECRET}@10.0.0.1"}),
        "CLUSTER.server must not contain credentials, because messages show the URL: put them into `users`",
    ),
    (
        config(cluster={"server": URL, "proxy-url": f"http://me:{SECRET}@proxy:99999"}),
        (
            "CLUSTER.proxy-url must be a URL with http or https; other kinds of proxies, such as "
            "socks5, are not supported"
        ),
    ),
    (config(cluster={"server": 5}), "CLUSTER.server is a number: must be text"),
    (
        config(cluster={"server": URL, "certificate-authority-data": "%"}),
        "CLUSTER.certificate-authority-data must be PEM encoded in base64",
    ),
    (
        config(cluster={"server": URL, "certificate-authority": "x", "insecure-skip-tls-verify": True}),
        (
            "CLUSTER.insecure-skip-tls-verify must not be true together with a "
            "certificate-authority: remove one of the two"
        ),
    ),
    (
        config(cluster={"server": URL, "insecure-skip-tls-verify": "yes"}),
        "CLUSTER.insecure-skip-tls-verify is text: must be true or false",
    ),
    (
        config(cluster={"server": URL, "proxy-url": "socks5://x"}),
        (
            "CLUSTER.proxy-url must be a URL with http or https; other kinds of proxies, such as "
            "socks5, are not supported"
        ),
    ),
    (
        config(user={"client-certificate-data": PEM}),
        "USER.client-key is missing: a client certificate and its key must be given together",
    ),
    (
        config(user={"client-key": "x"}),
        "USER.client-certificate is missing: a client certificate and its key must be given together",
    ),
    (config(user={"token": [SECRET]}), "USER.token is a list: must be text"),
    (config(user={"client-key-data": SECRET}), "USER.client-key-data must be PEM encoded in base64"),
    (config(user={"as-groups": "a"}), "USER.as-groups must be a list of texts"),
    (
        config(user={"auth-provider": {"name": "gcp"}}),
        "USER.auth-provider (gcp) was removed from Kubernetes; use an exec plug-in such as kubelogin",
    ),
    (config(user={"exec": "login"}), "USER.exec is text: must be a mapping"),
    (_exec(command=None), "USER.exec.command is missing"),
    (_exec(apiVersion=f"{V1}alpha1"), f"USER.exec.apiVersion is {V1}alpha1: must be {V1} or {V1}beta1"),
    (
        _exec(interactiveMode="Always"),
        f"USER.exec.interactiveMode is Always, but Meshwright cannot answer questions of a plug-in: {ASKS}",
    ),
    (
        _exec(interactiveMode="Maybe"),
        "USER.exec.interactiveMode is 'Maybe': must be Never or IfAvailable",
    ),
    (_exec(env=[5]), "USER.exec.env must be a list of mappings"),
]


@pytest.mark.parametrize(("said", "expected"), WRONG)
def test_wrong_field_is_an_error_without_secrets(said: dict[str, Any], expected: str, tmp_path: Path) -> None:
    """The message has the file, the field and the expected content."""
    file = written(tmp_path / "config", said)
    with pytest.raises(ConfigError) as caught:
        access([read(file)])
    for short, place in (
        ("FILE", str(file)),
        ("CLUSTER", "clusters[prod].cluster"),
        ("USER", "users[me].user"),
    ):
        expected = expected.replace(short, place)
    assert str(caught.value) == f"{file}: {expected}"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"users: [{{token: {SECRET}", "line 2: must be valid YAML: "),
        ("- a", "must be a kubeconfig: a mapping with clusters, contexts and users"),
        ("\x00", "must be valid YAML"),
        (f"users: !{SECRET} a", "line 1: must be valid YAML: ConstructorError"),
        (f"users: *{SECRET}", "line 1: must be valid YAML: ComposerError"),
        ("users: 2026-13-32", "must be valid YAML: ValueError"),
    ],
)
def test_file_that_is_no_kubeconfig_is_an_error_without_its_content(
    text: str, said: str, tmp_path: Path
) -> None:
    """The message has the file, and the line if it is known."""
    file = tmp_path / "config"
    file.write_text(text + "\n", "utf-8")
    with pytest.raises(ConfigError) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)


def test_missing_file_is_an_error_with_the_reason(tmp_path: Path) -> None:
    """The message has the path and the system's error."""
    with pytest.raises(ConfigError, match=f"{tmp_path}/none: cannot be read: No such file or directory"):
        read(tmp_path / "none")


def test_credentials_are_not_in_representations(tmp_path: Path) -> None:
    """Representations may be logged."""
    user = {"token": SECRET, "username": "me", "password": SECRET, "client-certificate-data": PEM}
    key = base64.b64encode(SECRET.encode()).decode()
    file = written(tmp_path / "config", config(user=user | {"client-key-data": key}))
    assert SECRET not in repr(access([read(file)]))
    assert SECRET not in repr(read(file))


def test_secrets_of_proxies_and_plugins_are_not_in_representations(tmp_path: Path) -> None:
    """Users put passwords into proxy URLs and plug-in arguments."""
    cluster = {"server": URL, "proxy-url": f"http://me:{SECRET}@proxy:3128"}
    called = {"apiVersion": EXEC_VERSIONS[0], "command": "log-in", "args": [f"--secret={SECRET}"]}
    user = {"exec": called | {"provideClusterInfo": True}}
    result = access([read(written(tmp_path / "config", config(cluster=cluster, user=user)))])
    assert result.user.plugin is not None
    assert SECRET not in repr(result)
