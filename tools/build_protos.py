"""Build hook: generate Python modules and stubs under `protos/`, for Envoy's API and for our own.

Envoy's API is generated from the descriptors in the pinned wheel `xds-protos`, and our own API from
`protos/meshwright/**/*.proto`; these modules are written next to their sources. Our own also has the part of
etcd's API that we use (`protos/meshwright/etcd/v3/etcd.proto`).

Hatchling runs this hook for every `pip install`, editable or not, so generated files are never committed. The
wheel `xds-protos` is needed only for the build and never installed with Meshwright: it owns the top-level
names `xds` and `envoy`, and two copies of one proto in a process clash.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOTS = (
    "envoy/config/accesslog/v3/accesslog.proto",
    "envoy/config/bootstrap/v3/bootstrap.proto",
    "envoy/config/cluster/v3/cluster.proto",
    "envoy/config/endpoint/v3/endpoint.proto",
    "envoy/config/listener/v3/listener.proto",
    "envoy/config/rbac/v3/rbac.proto",
    "envoy/config/route/v3/route.proto",
    "envoy/config/trace/v3/opentelemetry.proto",
    "envoy/config/trace/v3/zipkin.proto",
    "envoy/extensions/access_loggers/file/v3/file.proto",
    "envoy/extensions/access_loggers/open_telemetry/v3/logs_service.proto",
    "envoy/extensions/access_loggers/stream/v3/stream.proto",
    "envoy/extensions/clusters/dynamic_forward_proxy/v3/cluster.proto",
    "envoy/extensions/filters/http/cors/v3/cors.proto",
    "envoy/extensions/filters/http/ext_authz/v3/ext_authz.proto",
    "envoy/extensions/filters/http/fault/v3/fault.proto",
    "envoy/extensions/filters/http/grpc_stats/v3/config.proto",
    "envoy/extensions/filters/http/local_ratelimit/v3/local_rate_limit.proto",
    "envoy/extensions/filters/http/ratelimit/v3/rate_limit.proto",
    "envoy/extensions/filters/http/rbac/v3/rbac.proto",
    "envoy/extensions/filters/http/router/v3/router.proto",
    "envoy/extensions/filters/listener/http_inspector/v3/http_inspector.proto",
    "envoy/extensions/filters/listener/original_dst/v3/original_dst.proto",
    "envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol.proto",
    "envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector.proto",
    "envoy/extensions/filters/network/connection_limit/v3/connection_limit.proto",
    "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto",
    "envoy/extensions/filters/network/local_ratelimit/v3/local_rate_limit.proto",
    "envoy/extensions/filters/network/ratelimit/v3/rate_limit.proto",
    "envoy/extensions/filters/network/rbac/v3/rbac.proto",
    "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.proto",
    "envoy/extensions/request_id/uuid/v3/uuid.proto",
    "envoy/extensions/retry/host/previous_hosts/v3/previous_hosts.proto",
    "envoy/extensions/retry/priority/previous_priorities/v3/previous_priorities_config.proto",
    "envoy/extensions/tracers/opentelemetry/resource_detectors/v3/environment_resource_detector.proto",
    "envoy/extensions/transport_sockets/tls/v3/tls.proto",
    "envoy/extensions/transport_sockets/tls/v3/secret.proto",
    "envoy/extensions/upstreams/http/v3/http_protocol_options.proto",
    "envoy/service/accesslog/v3/als.proto",
    "envoy/service/auth/v3/external_auth.proto",
    "envoy/service/discovery/v3/ads.proto",
    "envoy/service/discovery/v3/discovery.proto",
    "envoy/service/ratelimit/v3/rls.proto",
    "envoy/service/status/v3/csds.proto",
    "envoy/type/matcher/v3/regex.proto",
    "opentelemetry/proto/collector/logs/v1/logs_service.proto",
    "opentelemetry/proto/collector/trace/v1/trace_service.proto",
)
TOP_LEVEL = ("envoy", "xds", "udpa", "validate", "cel", "opentelemetry")
# Imports in generated code, for example `from envoy.x import y_pb2` and `import envoy.x.y_pb2 as z`, move
# below `protos.`. The package google.api moves as well, because it is generated here; google.protobuf is
# installed.
_MOVED = re.compile(
    r"^(from|import) ((?:envoy|xds|udpa|validate|cel|opentelemetry|meshwright|google\.(?:api|rpc|type))\b)",
    re.MULTILINE,
)

_COLLECT = """
import importlib, sys
from google.protobuf import descriptor_pb2, descriptor_pool
roots, out = sys.argv[2:], sys.argv[1]
seen = {}
def visit(file):
    if file.name in seen:
        return
    for dependency in file.dependencies:
        visit(dependency)
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    seen[file.name] = proto
for root in roots:
    importlib.import_module(root.removesuffix('.proto').replace('/', '.') + '_pb2')
    visit(descriptor_pool.Default().FindFileByName(root))
with open(out, 'wb') as handle:
    handle.write(descriptor_pb2.FileDescriptorSet(file=seen.values()).SerializeToString())
print('\\n'.join(seen))
"""


def generate(protos: Path) -> int:
    """Generate the modules and stubs of ROOTS, of their imports, and of our own API.

    Return the number of files. `protos` is the folder of the package; unchanged files stay untouched. Raises
    CalledProcessError if protoc fails.
    """
    with tempfile.TemporaryDirectory() as scratch:
        descriptors = Path(scratch, "descriptors.binpb")
        listed = run_python(protos, "-c", _COLLECT, str(descriptors), *ROOTS)
        names = [name for name in listed.split() if not name.startswith("google/protobuf/")]
        out = Path(scratch, "out")
        out.mkdir()
        lines = (f"--descriptor_set_in={descriptors}", f"--python_out={out}", f"--pyi_out={out}")
        run_python(protos, "-m", "grpc_tools.protoc", *lines, *names)
        own = _generate_own(protos, out)
        _rewrite_imports(out)
        install(out, protos)
    return len(names) + own


def _generate_own(protos: Path, out: Path) -> int:
    """Generate the modules and stubs of Meshwright's own gRPC API; return the number of files."""
    sources = sorted(str(path.relative_to(protos)) for path in protos.glob("meshwright/**/*.proto"))
    well_known = resources.files("grpc_tools") / "_proto"
    paths = (f"-I{protos}", f"-I{well_known}", f"--python_out={out}", f"--pyi_out={out}")
    run_python(protos, "-m", "grpc_tools.protoc", *paths, *sources)
    return len(sources)


def run_python(protos: Path, *arguments: str) -> str:
    """Run this interpreter with the import path of the build; return its standard output.

    The import path is passed in PYTHONPATH, because pip keeps the requirements of a build outside any
    environment; with the option `-I` an interpreter would ignore PYTHONPATH and not find them. The path omits
    the checkout, so that the checkout's own `xds/` is not imported in place of the wheel's.
    """
    path = (item for item in sys.path if Path(item).resolve() != protos.resolve().parent)
    command = [sys.executable, "-P", "-s", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def _rewrite_imports(out: Path) -> None:
    for path in sorted([*out.rglob("*.py"), *out.rglob("*.pyi")]):
        text = path.read_text()
        moved = _MOVED.sub(r"\1 protos.\2", text)
        if moved != text:
            path.write_text(moved)


def install(out: Path, protos: Path) -> None:
    """Copy changed files from `out` to `protos`, and delete stale ones.

    Each file is replaced atomically, because programs may import the modules at the same time.
    """
    for folder in [path for path in out.rglob("*") if path.is_dir()]:
        (folder / "__init__.py").touch()
    made = {path.relative_to(out) for path in out.rglob("*") if path.is_file()}
    for item in sorted(made):
        target = protos / item
        if not target.exists() or target.read_bytes() != (out / item).read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f".{target.name}.new")
            shutil.copyfile(out / item, draft)
            draft.replace(target)
    for generated in out.iterdir():
        for path in [*(protos / generated.name).rglob("*.py"), *(protos / generated.name).rglob("*.pyi")]:
            if path.relative_to(protos) not in made:
                path.unlink()


class ProtosHook(BuildHookInterface[Any]):
    """Hatchling's build hook, for normal and editable wheels."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate the protobuf modules before a build; the arguments of hatchling are unused."""
        del version, build_data
        count = generate(Path(self.root, "protos"))
        self.app.display_info(f"generated {count} API files under protos/")
