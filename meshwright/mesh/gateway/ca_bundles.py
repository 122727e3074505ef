"""ConfigMaps with CA certificates, by which gateways verify backends or clients."""

from dataclasses import dataclass, field

from meshwright.mesh.policies.smi import PolicyKey


@dataclass(frozen=True, slots=True)
class CaBundle:
    """core ConfigMap with CA certificates in `data.ca.crt`: all certificates as PEM, without other text.

    `fault` says why the certificates cannot be used, for example `data.ca.crt is empty`; then `pem` is empty.
    """

    key: PolicyKey
    pem: str = field(default="", repr=False)
    fault: str = ""
