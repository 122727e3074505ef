"""The settings for etcd, which the server shares with the commands that write objects."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from meshwright.controller.settings.file_settings import FileSettings
from meshwright.controller.settings.values import Hosts, MaybePath

LOCATION: Final = "etcd_endpoints"
"""The setting without which the others have no effect."""


def _endpoints(value: tuple[str, ...]) -> tuple[str, ...]:
    if not value:
        return ()
    # Imported only here, so that a server without etcd does not need the memory.
    from meshwright.etcd.access import Endpoint
    from meshwright.etcd.errors import AccessError

    try:
        return tuple(dict.fromkeys(str(Endpoint.parse(text)) for text in value))
    except AccessError as error:
        raise ValueError(str(error)) from None


# An endpoint may have a password by mistake, so errors do not repeat the value.
Endpoints = Annotated[Hosts, AfterValidator(_endpoints), Field(repr=False)]


class EtcdFields(FileSettings):
    """Each setting of etcd by itself; `meshwright.controller.settings.etcd_rules` has the combinations."""

    etcd_objects: bool = False
    """Read the mesh from objects in etcd, which `meshwright apply` writes, in addition to `mesh` or instead
    of it (docs/start/etcd.md). Needs `etcd_endpoints`."""
    etcd_endpoints: Endpoints = ()
    """Client URLs of the members of etcd, for example https://10.0.0.1:2379,https://10.0.0.2:2379. Plain
    text (http) is permitted on loopback only. All keys are below /meshwright/TRUST-DOMAIN/. Needs `store`
    etcd or `etcd_objects`."""
    etcd_ca: MaybePath = None
    """File with the CA certificates that verify the members of etcd. If empty, the CA certificates that gRPC
    includes."""
    etcd_certificate: MaybePath = None
    """File with the client certificate for etcd. The server reads certificate, key and CA again when a
    connection fails, so they can be renewed while the server runs."""
    etcd_key: MaybePath = None
    """File with the private key for `etcd_certificate`."""
    etcd_user_file: MaybePath = None
    """File with one line, USER:PASSWORD, for etcd with users. The server reads the file again at each login.
    With https either this file or `etcd_certificate` is required."""

    @property
    def etcd_given(self) -> tuple[str, ...]:
        """Names of the given settings of the connection to etcd."""
        names = (LOCATION, "etcd_ca", "etcd_certificate", "etcd_key", "etcd_user_file")
        return tuple(name for name in names if getattr(self, name))
