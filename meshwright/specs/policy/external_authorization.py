"""ExternalAuthorization, policy.meshwright.dev v1alpha1: the authorizer for requests that policy allows."""

from typing import Final

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.policies.authorization import NOWHERE, Authorizer, ExternalAuthorization
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import Manifest
from meshwright.specs.policy.workloads import subjects
from meshwright.specs.values.authorizers import STAT_PREFIX, patience
from meshwright.specs.values.references import host, namespace_name, object_name

HOST_RULE: Final = (
    "must be the DNS name or IP address of the authorizer; without host, give extensionService, "
    "or disabled: true"
)
NOBODY_ASKED: Final = (
    "is ignored with disabled: true, which switches authorization off; remove one of the two"
)
_ASKED: Final = ("host", "port", "extensionService", "timeout", "failureModeAllow")


def external_authorization(manifest: Manifest) -> ExternalAuthorization:
    """Read an ExternalAuthorization; the ServiceAccounts are those of its own namespace."""
    fields = manifest.spec()
    accounts, ports = subjects(fields)
    disabled = fields.flag("disabled")
    referred = fields.section("extensionService")
    service = _service(manifest, referred) if fields.has("extensionService") else None
    authorizer = None if disabled else _authorizer(fields, service)
    if disabled:
        _refuse_authorizer_fields(fields)
    fields.close()
    return ExternalAuthorization(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        authorizer=authorizer,
        accounts=accounts,
        ports=ports,
        created=manifest.metadata.text("creationTimestamp") or "",
        service=service,
    )


def _service(manifest: Manifest, fields: Fields) -> PolicyKey:
    key = PolicyKey(namespace_name(fields, "namespace", manifest.namespace), object_name(fields, "name"))
    fields.close()
    return key


def _authorizer(fields: Fields, service: PolicyKey | None) -> Authorizer:
    where = HostPort(host(fields, "host"), fields.port("port") or 1)
    if service is not None:
        for name in ("host", "port"):
            if fields.has(name):
                fields.wrong(name, "must be left out, because extensionService already names the authorizer")
        where = NOWHERE
    elif not fields.raw("host"):
        fields.wrong("host", HOST_RULE)
    elif not fields.has("port"):
        fields.wrong("port", "must be the port of the authorizer, from 1 to 65535")
    return Authorizer(
        server=where,
        stat_prefix=STAT_PREFIX,
        timeout=patience(fields),
        fails_open=fields.flag("failureModeAllow"),
    )


def _refuse_authorizer_fields(fields: Fields) -> None:
    # Accepted first, so that `close` does not report these fields again, as unknown.
    fields.accept(*_ASKED)
    for name in _ASKED:
        if fields.has(name):
            fields.wrong(name, NOBODY_ASKED)
