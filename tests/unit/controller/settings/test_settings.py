"""Tests of settings: their sources, and messages about invalid ones."""

from pathlib import Path

import pytest

from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.settings import load
from meshwright.mesh.host_port import HostPort

REQUIRED = {"mesh": "m", "state": "s"}


def test_flags_override_environment_file_and_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each source is used if no stronger source has the setting."""
    config = tmp_path / "config.yaml"
    config.write_text(
        "ads-address: 1.1.1.1:1\nhttp_address: 1.1.1.1:1\ndebug_address: 1.1.1.1:1\nads_hosts: [a.example]\n"
    )
    monkeypatch.setenv("MESHWRIGHT_ADS_ADDRESS", "2.2.2.2:2")
    monkeypatch.setenv("MESHWRIGHT_HTTP_ADDRESS", "2.2.2.2:2")
    monkeypatch.setenv("MESHWRIGHT_CONFIG", str(config))
    monkeypatch.setenv("MESHWRIGHT_DEBUG_HOSTS", "a.example, b.example")
    settings = load(REQUIRED | {"ads_address": "3.3.3.3:3", "trust_domain": None})
    assert (settings.ads_address, settings.http_address, settings.debug_address) == (
        HostPort("3.3.3.3", 3),
        HostPort("2.2.2.2", 2),
        HostPort("1.1.1.1", 1),
    )
    assert (settings.ads_hosts, settings.debug_hosts, settings.trust_domain) == (
        ("a.example",),
        ("a.example", "b.example"),
        "cluster.local",
    )


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"state": None}, "the setting state is missing: give --state or set MESHWRIGHT_STATE"),
        (
            {"mesh": None},
            "a source for the mesh is required: give --mesh DIR (or MESHWRIGHT_MESH) or --kube",
        ),
        ({"mesh": ""}, "a source for the mesh is required: give --mesh DIR (or MESHWRIGHT_MESH)"),
        (
            {"ads_address": "15128"},
            "--ads-address is '15128': must be HOST:PORT, for example 127.0.0.1:9092 or [::1]:9092",
        ),
        ({"ads_address": "::1:80"}, "--ads-address is '::1:80': must be HOST:PORT"),
        ({"ads_address": "a:70000"}, "--ads-address is 'a:70000': must be HOST:PORT"),
        ({"trust_domain": "Bad_Domain"}, "--trust-domain is 'Bad_Domain': must be a DNS name in lower case"),
        ({"quiet_seconds": "0"}, "--quiet-seconds is '0': input should be greater than 0"),
        (
            {"store": "kubernetes"},
            "store kubernetes requires kubernetes: add --kubernetes",
        ),
        (
            {
                "store": "kubernetes",
                "kubernetes": True,
                "authority_directory": "ca",
            },
            "store kubernetes does not work with authority_directory: all servers use the CA",
        ),
        (
            {
                "store": "kubernetes",
                "kubernetes": True,
                "rebuild_ledger": "3f9a02",
            },
            "store kubernetes does not work with rebuild_ledger: all servers use the CA",
        ),
        ({"store": "zookeeper"}, "--store is 'zookeeper': "),
        ({"quiet_seconds": 2}, "longest_seconds must not be less than quiet_seconds"),
        (
            {"trace_collector_tls": "yes"},
            ("trace_collector_tls requires trace_collector: set trace_collector too, or remove it"),
        ),
        (
            {"trace_collector": "c:4317", "trace_collector_ca": "ca.pem"},
            "trace_collector_ca requires trace_collector_tls: set that too, or remove it",
        ),
        ({"trace_collector": "c:0"}, "trace_collector must have a port, for example otel-collector:4317"),
        (
            {"http_upgrades": "websocket,TLS 1.2"},
            (
                "--http-upgrades is 'websocket,TLS 1.2': must be values of the Upgrade header, for example "
                "websocket; 'TLS 1.2' is not one"
            ),
        ),
        ({"namespaces": "a,B"}, "--namespaces is 'a,B': must be names of namespaces, but 'B' is not one"),
        (
            {"namespace_selector": "a in b"},
            "--namespace-selector is 'a in b': 'a in b' must be a label selector",
        ),
        ({"dns_floor_seconds": 400}, "dns_ceiling_seconds must not be less than dns_floor_seconds"),
        (
            {"webhook_reached_at": "nowhere"},
            "--webhook-reached-at is 'nowhere': must be NAMESPACE/SERVICE or",
        ),
        (
            {"webhook_address": "127.0.0.1:1", "webhook_reached_at": "a/b"},
            "webhook_address requires kubernetes: add --kubernetes",
        ),
        (
            {"webhook_address": "127.0.0.1:1", "kubernetes": True},
            "webhook_address needs webhook_reached_at, the address at which API servers reach the webhook",
        ),
        (
            {"enrolment_proofs": ""},
            "--enrolment-proofs is '': must name at least one kind of proof, for example join-token",
        ),
        (
            {"enrolment_proofs": "join-token,kubernetes"},
            "enrolment_proofs includes kubernetes, whose tokens only a cluster can verify: add --kubernetes",
        ),
        ({"enrolment_address": "here"}, "--enrolment-address is 'here': must be HOST:PORT"),
        ({"dns_nameservers": "10.0.0.2:"}, "--dns-nameservers is '10.0.0.2:': must be IP addresses, with or"),
        ({"dns_nameservers": "ns.test"}, "--dns-nameservers is 'ns.test': must be IP addresses, with or"),
        ({"virtual_addresses": "10.0.0.0/99"}, "--virtual-addresses is '10.0.0.0/99': input is not a valid"),
        ({"log_level": "loud"}, "--log-level is 'loud': input should be 'debug', 'info'"),
        ({"colour": "x"}, "--colour is not a setting"),
    ],
)
def test_invalid_flag_is_named_with_its_value_and_the_accepted_form(
    flags: dict[str, object], sentence: str
) -> None:
    """The error is one sentence, without text of the library."""
    with pytest.raises(SettingsError) as caught:
        load(REQUIRED | flags)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_invalid_variable_is_named_as_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the variable's name, so that the reader finds the place to correct."""
    monkeypatch.setenv("MESHWRIGHT_HTTP_ADDRESS", "x")
    with pytest.raises(SettingsError, match=r"^MESHWRIGHT_HTTP_ADDRESS is 'x': must be HOST:PORT"):
        load(REQUIRED)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("http_address: x", "http_address in the config file is 'x': must be HOST:PORT"),
        ("htp_address: x", "htp_address in the config file is not a setting"),
        ("- a", "must be a mapping of settings to values"),
        ("a: [", "is not YAML: line 2: must be valid YAML"),
        (
            "quiet_secs: 1",
            "quiet_secs in the config file is not a setting; did you mean quiet_seconds?",
        ),
        ("zzz: 1", "zzz in the config file is not a setting; `meshwright serve --settings` lists all"),
        (
            "log_level: debug\nverify: no\nlog_level: info",
            "line 3: must have each key only once; 'log_level' occurs",
        ),
        ("log-level: debug\nlog_level: info", "has the setting log_level twice, with - and with _"),
        ("verify: no\n---\nverify: no", "must have one document, but line 3 begins a second one"),
        ("verify: !yes no", "line 1: must not use YAML tags (!name)"),
        ("\ud800".encode("utf-8", "surrogatepass"), "is not YAML: the byte at offset 0 is not UTF-8"),
    ],
)
def test_invalid_config_file_is_named_in_the_error(tmp_path: Path, text: str | bytes, sentence: str) -> None:
    """Errors of the config file name the file or the setting in it, in one line."""
    config = tmp_path / "config.yaml"
    config.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SettingsError) as caught:
        load(REQUIRED | {"config": str(config)})
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_config_file_is_an_error(tmp_path: Path) -> None:
    """A config file that was given must exist."""
    with pytest.raises(SettingsError, match=r"cannot read the config file .*: No such file"):
        load(REQUIRED | {"config": str(tmp_path / "none.yaml")})


def test_addresses_are_printed_as_they_are_read() -> None:
    """IPv6 addresses keep their brackets."""
    assert [str(HostPort.parse(text)) for text in ("[::1]:1", "a.example:0")] == ["[::1]:1", "a.example:0"]


def test_defaults_open_no_optional_port_to_the_network() -> None:
    """By default debug pages listen on loopback, and enrolment, renewal and the webhook are off."""
    settings = load(REQUIRED)
    assert settings.debug_address == HostPort("127.0.0.1", 9092)
    others = (settings.enrolment_address, settings.renewal_address, settings.webhook_address)
    assert (others, settings.driver_addresses) == ((None, None, None), {})


def test_each_source_of_the_mesh_is_sufficient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory, a cluster or a provider is sufficient. An empty variable removes the directory."""
    monkeypatch.setenv("MESHWRIGHT_MESH", "")
    settings = load({"state": "s", "providers": "mine:a=1;other", "kubernetes": True})
    assert settings.mesh is None
    assert settings.sources == ("a Kubernetes cluster", "provider mine", "provider other")
    named = load({"state": "s", "kubernetes": "yes", "kube_context": "east"}).sources
    assert named == ("the Kubernetes cluster of context east",)
    assert load({"state": "s"}, nothing_to_read=True).sources == ()
    assert load(REQUIRED | {"providers": "mine"}).sources == ("the mesh directory m", "provider mine")


@pytest.mark.parametrize("name", ["kubeconfig", "kube_context", "namespaces", "namespace_selector"])
def test_cluster_setting_without_kubernetes_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting would have no effect, so the error names the missing --kubernetes."""
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(SettingsError, match=f"^{flag} requires --kubernetes: add --kubernetes"):
        load(REQUIRED | {name: "a"})
    monkeypatch.setenv(variable := f"MESHWRIGHT_{name.upper()}", "a")
    with pytest.raises(
        SettingsError,
        match=f"^{variable} requires --kubernetes: add --kubernetes, or remove {variable}$",
    ):
        load(REQUIRED)
    assert load(REQUIRED, nothing_to_read=True).kubernetes is False, "whoever asks a server reads nothing"
    monkeypatch.delenv(variable)
    assert load(REQUIRED | {name: "a", "kubernetes": True}).kubernetes
    assert load(REQUIRED | {name: ""}).kubernetes is False


def test_nameservers_are_printed_as_they_are_read() -> None:
    """The order is kept, and the port is shown only if it is not 53."""
    settings = load(REQUIRED | {"dns_nameservers": "[fd00::2]:5353, 10.0.0.2,10.0.0.3:53"})
    expected = ["[fd00::2]:5353", "10.0.0.2", "10.0.0.3"]
    assert settings.model_dump(mode="json")["dns_nameservers"] == expected
    assert load(REQUIRED | {"dns_nameservers": expected}).dns_nameservers == settings.dns_nameservers


_WRITTEN = {
    "endpoint_admission": ["off", "identity", "ready", '"off"'],
    "shared_state": ["off", "on", "yes", "No", "true", "FALSE", "'on'"],
    "ads_address": ["1.2.3.4:15128", '"[::1]:80"'],
    "begin_anew": ["3e9102", "0123", "1_000", "0x1f", "12:30:00", "no"],
    "rebuild_ledger": ["3e9102", "0123"],
    "quiet_seconds": [".5", "0.25", "1", "'1'"],
    "max_connections": ["16", "null", "~", ""],
    "header_kibibytes": ["64"],
    "mesh": ["2026-01-01", "on", "/srv/mesh"],
    "ads_hosts": ["[a.example, 10.0.0.1]", "a.example", "\n- no\n- 1.0"],
    "driver_addresses": ["{document: 127.0.0.1:15129}", "document=127.0.0.1:15129"],
    "log_format": ["auto", "json"],
    "virtual_addresses": ["240.0.0.0/8"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, of in _WRITTEN.items() for text in of])
def test_setting_has_the_same_meaning_in_a_file_and_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    """Words, numbers and addresses in YAML are not converted to other values."""
    config = tmp_path / "config.yaml"
    mesh = "" if name == "mesh" else "mesh: m\n"
    config.write_text(f"{mesh}state: s\n{name}: {text}\n")
    result = getattr(load({"config": str(config)}), name)
    plain = text.strip("'\"")
    if "[a" in text or "{" in text or "\n" in text:
        expected = {"ads_hosts": (("a.example", "10.0.0.1"), ("no", "1.0"))}
        assert result in expected.get(name, (result,))
        assert result
        return
    if plain in ("null", "~", ""):
        assert result is None
        return
    monkeypatch.setenv(f"MESHWRIGHT_{name.upper()}", plain)
    others = {key: value for key, value in REQUIRED.items() if key != name}
    assert result == getattr(load(others), name)


def test_empty_config_file_has_no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is empty, or has only a comment or a document marker, is valid."""
    monkeypatch.delenv("MESHWRIGHT_VERIFY", raising=False)  # may be set where the tests run
    config = tmp_path / "config.yaml"
    for text in ("", "# nothing yet\n", "---\n"):
        config.write_text(text)
        assert load(REQUIRED | {"config": str(config)}).model_fields_set == {"mesh", "state", "config"}


@pytest.mark.parametrize(
    "given", [{"issuer": "files", "ca_directory": "ca"}, {"root_secrets": "secrets"}, {}]
)
def test_servers_with_a_shared_store_may_have_another_issuer(given: dict[str, object]) -> None:
    """Its succession is shared, and roots in Secrets are the same on all servers."""
    settings = load(REQUIRED | {"store": "kubernetes", "kubernetes": True} | given)
    assert (settings.store, settings.issuer) == ("kubernetes", given.get("issuer", "built-in"))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, (0.0, 0.0)),
        ({"store": "kubernetes"}, (5.0, 20.0)),
        ({"store": "kubernetes", "shutdown_delay_seconds": 0}, (0.0, 20.0)),
        ({"store": "kubernetes", "shutdown_spread_seconds": "0"}, (5.0, 0.0)),
    ],
)
def test_server_with_a_shared_store_ends_in_steps(
    tmp_path: Path, flags: dict[str, object], expected: tuple[float, float]
) -> None:
    """The others need time to take over its proxies; a single server ends quickly, as before."""
    given = {"kubernetes": True, "key_passphrase_file": str(tmp_path / "passphrase"), **flags}
    settings = load(REQUIRED | given if "store" in flags else REQUIRED)
    assert (settings.shutdown_delay_seconds, settings.shutdown_spread_seconds) == expected
    assert settings.model_dump()["shutdown_spread_seconds"] == expected[1]
