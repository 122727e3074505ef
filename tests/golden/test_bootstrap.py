"""Test that Envoy itself accepts our bootstraps."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.ledger.sqlite import SqliteLedger
from certs.proxy import issue_proxy
from meshwright.agent.envoy.command import EnvoyOptions, validate
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import AdsProtocol, BootstrapSettings, bootstrap
from tests.tools import envoy
from tests.tools.deadline import HANG_SECONDS
from tests.tools.own_authority import own_authority

pytestmark = pytest.mark.envoy


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Credentials of a proxy with a name longer than X.520 allows for a common name."""
    folder = tmp_path_factory.mktemp("credentials")
    authority = own_authority(folder, TrustDomain("cluster.local"), datetime.now(UTC))
    with SqliteLedger.open(folder / "ledger.db") as ledger:
        proxy = issue_proxy(authority, ledger, _name(), timedelta(days=1), datetime.now(UTC))
    (folder / "proxy.pem").write_bytes(proxy.chain_pem)
    (folder / "proxy.key").write_bytes(proxy.key.reveal())
    (folder / "ca.pem").write_bytes(authority.trust_bundle())
    return folder


@pytest.mark.parametrize("protocol", AdsProtocol)
@pytest.mark.parametrize(
    "hosts",
    [("127.0.0.1",), ("::1",), ("ads.example",), ("127.0.0.1", "::1"), ("ads.example", "10.0.0.1", "::1")],
)
def test_envoy_accepts_the_bootstrap_without_warnings(
    credentials: Path, protocol: AdsProtocol, hosts: tuple[str, ...]
) -> None:
    """Envoy's validation succeeds for each protocol and each kind of host, also with several servers."""
    settings = BootstrapSettings(
        proxy_name=_name(),
        trust_domain=TrustDomain("cluster.local"),
        ads=tuple(HostPort(host, 15128) for host in hosts),
        certificate_file=credentials / "proxy.pem",
        key_file=credentials / "proxy.key",
        ca_file=credentials / "ca.pem",
        protocol=protocol,
    )
    file = credentials / "bootstrap.json"
    file.write_text(bootstrap(settings))
    program = envoy.program()
    assert program is not None
    command = validate(EnvoyOptions(program), file)
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _name() -> ProxyName:
    return ProxyName.parse(f"{'u' * 63}.{'s' * 63}.ns")
