"""Tests of the builder of real parts: builds with Go, reuse of programs, and generated keys."""

import base64
import json
import os
import select
import signal
import ssl
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from tests.e2e.agent.scenes import is_alive
from tests.tools.deadline import wait_until
from tools.ports import free_port
from tools.real_parts import building
from tools.real_parts.building import PartError, build, is_built, program, shared
from tools.real_parts.cluster import cluster
from tools.real_parts.keys import LOOPBACK, Keys
from tools.real_parts.parts import (
    API_SERVER,
    CERT_MANAGER,
    COREDNS,
    ETCD,
    GATEWAY_CONFORMANCE,
    ISTIOD,
    PARTS,
)
from tools.real_parts.processes import Program, running

OWN = """module k8s.io/kubernetes

require (
	github.com/google/cadvisor v0.56.2
	k8s.io/api v0.0.0
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/client-go => ./staging/src/k8s.io/client-go
)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the parts in a temporary folder."""
    monkeypatch.setenv("REAL_PARTS", str(tmp_path))
    return tmp_path


def test_kubernetes_staging_modules_are_replaced_by_releases() -> None:
    """Kubernetes replaces them by local folders, which other modules do not have."""
    result = API_SERVER.module_file(OWN)
    assert "\tk8s.io/kubernetes v1.36.3\n" in result
    assert "\tk8s.io/api => k8s.io/api v0.36.3\n" in result
    assert "\tk8s.io/client-go => k8s.io/client-go v0.36.3\n" in result
    assert "cadvisor" not in result


def test_istiod_requires_its_api_by_release() -> None:
    """Istio names a commit that the Go module proxy does not serve."""
    result = ISTIOD.module_file()
    assert "\tistio.io/api v1.31.1\n" in result
    assert "replace" not in result


def test_conformance_suite_is_built_by_the_go_version_that_it_requires(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite is a test of Go, and replaces a module by a version that module proxies have."""
    module = cache / "module" / GATEWAY_CONFORMANCE.folder
    module.mkdir(parents=True)
    commands: list[tuple[str, ...]] = []

    def go(source: Path, *words: str, toolchain: str = "") -> str:
        if "-o" in words:
            commands.append((toolchain, *words[:2]))
            assert "RunConformance" in (source / "main_test.go").read_text()
            Path(words[words.index("-o") + 1]).write_text("program")
        return json.dumps({"Dir": str(cache / "module")})

    monkeypatch.setattr(building, "has_go", lambda: True)
    monkeypatch.setattr(building, "_go", go)
    build(GATEWAY_CONFORMANCE)
    assert commands == [("1.27.3", "test", "-c")]
    result = (cache / "src" / GATEWAY_CONFORMANCE.name / "go.mod").read_text()
    assert "\ngo 1.27.3\n" in result
    images = "sigs.k8s.io/gateway-api-conformance-images"
    assert f"replace (\n\t{images} => {images} v0.1.0\n)\n" in result


def test_every_part_is_pinned_to_a_version() -> None:
    """A branch or `latest` is not allowed."""
    for part in PARTS.values():
        assert part.version[0].isdigit()
        assert all(version[0].isdigit() for version in part.requires.values())


def test_program_in_the_right_version_is_not_built_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of another version, or without a stamp, is built."""
    monkeypatch.setattr(building, "has_go", lambda: False)
    for folder in ("bin", "stamp"):
        (cache / folder).mkdir()
    program(ETCD).write_text("etcd")
    assert not is_built(ETCD)
    (cache / "stamp" / "etcd").write_text("3.6.0\n")
    with pytest.raises(PartError, match="etcd is built with Go"):
        build(ETCD)
    (cache / "stamp" / "etcd").write_text(f"{ETCD.version}\n")
    assert build(ETCD) == cache / "bin" / "etcd"


def test_interrupted_build_is_never_taken_for_another_version(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old stamp is invalid even if the builder ends before it has written the new one."""

    def built(_: Path, *words: str, toolchain: str = "") -> str:
        del toolchain
        Path(words[words.index("-o") + 1]).write_text("newer")
        return ""

    exchange = Path.replace

    def ended(self: Path, target: Path) -> None:
        exchange(self, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(building, "has_go", lambda: True)
    monkeypatch.setattr(building, "_go", built)
    monkeypatch.setattr(Path, "replace", ended)
    older = replace(ETCD, version="3.6.0")
    for folder, text in (("bin", "older"), ("stamp", older.version)):
        (cache / folder).mkdir()
        (cache / folder / "etcd").write_text(text)
    assert is_built(older)
    with pytest.raises(KeyboardInterrupt):
        build(ETCD)
    assert (program(ETCD).read_text(), is_built(older), is_built(ETCD)) == ("newer", False, False)


def test_program_is_built_again_after_a_change_of_its_source(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CoreDNS with other plug-ins is another program of the same version."""

    def built(source: Path, *words: str, toolchain: str = "") -> str:
        del toolchain
        Path(words[words.index("-o") + 1]).write_text((source / "main.go").read_text())
        return ""

    monkeypatch.setattr(building, "has_go", lambda: True)
    monkeypatch.setattr(building, "_go", built)
    assert '_ "github.com/coredns/coredns/plugin/kubernetes"' in build(COREDNS).read_text()
    assert is_built(COREDNS)
    more = replace(COREDNS, source=COREDNS.source.replace("plugin/errors", "plugin/log"))
    assert not is_built(more)
    assert "plugin/log" in build(more).read_text()


def test_folder_of_a_module_is_replaced_with_its_program(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Go keeps modules read-only, which must not prevent the replacement."""
    module = cache / "module" / CERT_MANAGER.folder
    module.mkdir(parents=True)
    (module / "one.yaml").write_text("one")
    module.chmod(0o555)

    def go(_: Path, *words: str, toolchain: str = "") -> str:
        del toolchain
        if "-o" in words:
            Path(words[words.index("-o") + 1]).write_text("program")
        return json.dumps({"Dir": str(cache / "module")})

    monkeypatch.setattr(building, "has_go", lambda: True)
    monkeypatch.setattr(building, "_go", go)
    build(CERT_MANAGER)
    kept = shared(CERT_MANAGER)
    (kept / "older.yaml").write_text("older")
    build(replace(CERT_MANAGER, version="2.0.0"))
    assert {path.name: path.read_text() for path in kept.iterdir()} == {"one.yaml": "one"}


def test_keys_are_signed_by_one_ca_and_private_to_their_owner(tmp_path: Path) -> None:
    """The server's certificate is valid for the given address, and all files have mode 0600."""
    keys = Keys(tmp_path / "keys")
    keys.issue("server", "kube-apiserver", "", "10.96.0.1")
    result = tmp_path / "keys"
    verified = subprocess.run(
        ["openssl", "verify", "-CAfile", result / "ca.crt", "-verify_ip", "10.96.0.1", result / "server.crt"],
        capture_output=True,
        check=False,
    )
    assert verified.returncode == 0, verified.stderr
    ssl.create_default_context(cafile=str(result / "ca.crt")).load_cert_chain(
        result / "server.crt", result / "server.key"
    )
    assert {path.stat().st_mode & 0o777 for path in result.iterdir()} == {0o600}


def test_token_has_the_given_claims_and_a_valid_signature(tmp_path: Path) -> None:
    """The public half of the signing key verifies it, as an API server does."""
    keys = Keys(tmp_path / "keys")
    keys.signing("tokens")
    head, claims, signature = keys.token("tokens", {"sub": "system:serviceaccount:shop:buyer"}).split(".")
    assert json.loads(_decoded(claims)) == {"sub": "system:serviceaccount:shop:buyer"}
    result = serialization.load_pem_public_key((tmp_path / "keys" / "tokens.pub").read_bytes())
    assert isinstance(result, ec.EllipticCurvePublicKey)
    raw = _decoded(signature)
    pair = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    result.verify(pair, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))


def test_service_can_be_restarted_and_ends_with_its_block(tmp_path: Path) -> None:
    """It restarts with the same arguments and continues the same log."""
    port = free_port(LOOPBACK)
    text = "import http.server as h; print('up', flush=True)"
    code = f"{text}; h.test(h.SimpleHTTPRequestHandler, port={port}, bind='{LOOPBACK}')"
    program = Program(Path(sys.executable), ("-c", code), tmp_path, f"http://{LOOPBACK}:{port}/")
    with running(program) as service:
        first = service.process
        service.kill()
        assert first.returncode == -signal.SIGKILL
        service.again()
        assert service.process.poll() is None
    assert service.process.returncode is not None
    assert program.log_file.read_text().splitlines().count("up") == 2


def test_service_survives_the_thread_that_started_it(tmp_path: Path) -> None:
    """The kernel treats that thread as the parent for the parent-death signal."""
    port = free_port(LOOPBACK)
    words = ("-m", "http.server", str(port), "--bind", LOOPBACK)
    with running(Program(Path(sys.executable), words, tmp_path, f"http://{LOOPBACK}:{port}/")) as service:
        service.kill()
        starts = threading.Thread(target=service.again)
        starts.start()
        starts.join()
        service.until_ready()
        assert service.process.poll() is None


def test_service_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """A killed process leaves no service running."""
    port = free_port(LOOPBACK)
    code = f"""
from pathlib import Path
import signal, sys
from tools.real_parts.processes import Program, running
words = ("-m", "http.server", "{port}", "--bind", "{LOOPBACK}")
program = Program(Path(sys.executable), words, Path("{tmp_path}"), "http://{LOOPBACK}:{port}/")
with running(program) as service:
    print(service.process.pid, flush=True)
    signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        child = int(started.stdout.readline())
        watched = os.pidfd_open(child)
        try:
            started.kill()
            assert select.select([watched], [], [], 60)[0]
        finally:
            os.close(watched)


def test_failed_service_is_reported_with_its_last_output(tmp_path: Path) -> None:
    """The error has the output and not only that the address does not answer."""
    program = Program(
        Path(sys.executable), ("-c", "raise SystemExit('no disk')"), tmp_path, "http://127.0.0.1:1/"
    )
    with pytest.raises(PartError, match=r"is not ready at http://127\.0\.0\.1:1/: no disk"), running(program):
        pass


# Keeps the parent in the constructor of Popen after the fork, as a busy machine does.
_SLOW_START = """
import _posixsubprocess, time
fork_exec = _posixsubprocess.fork_exec
def slow(*arguments):
    pid = fork_exec(*arguments)
    time.sleep(1)
    return pid
_posixsubprocess.fork_exec = slow
"""


@pytest.mark.parametrize("site", ["", _SLOW_START], ids=["at once", "before Popen has returned"])
def test_terminated_build_leaves_no_process_or_temporary_files(cache: Path, site: str) -> None:
    """Go's temporary files take a gigabyte if Go is killed."""
    tools, scratch = cache / "tools", cache / "scratch"
    for folder in (tools, scratch):
        folder.mkdir()
    (tools / "sitecustomize.py").write_text(site)
    script = 'd=$(mktemp -d "${GOTMPDIR:-$TMPDIR}/go-build.XXXX") && echo $$ >"$d/pid" && echo begun >&2'
    (tools / "go").write_text(f"#!/bin/sh\n{script}\nexec sleep 300\n")
    (tools / "go").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "TMPDIR": str(scratch)}
    environment["PYTHONPATH"] = str(tools)
    words = [sys.executable, "-m", "tools.real_parts", "build", "etcd"]
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        assert started.stderr.readline() == "begun\n"
        (pid,) = (int(path.read_text()) for path in cache.rglob("pid"))
        started.send_signal(signal.SIGTERM)
        started.wait(30)
        wait_until(lambda: not is_alive(pid), 60)
    assert started.returncode == 128 + signal.SIGTERM
    assert list(cache.rglob("go-build.*")) == []


def test_folder_with_an_existing_cluster_is_refused(cache: Path, tmp_path: Path) -> None:
    """Its keys and data belong to another cluster, and no part is built."""
    del cache
    (tmp_path / "there" / "log").mkdir(parents=True)
    with (
        pytest.raises(PartError, match=r"there exists already.*: name another"),
        cluster(tmp_path / "there"),
    ):
        pass


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
