"""Rules for combinations of the settings for etcd."""

from typing import Final

from meshwright.controller.settings.etcd_fields import LOCATION, EtcdFields

_SECURED: Final = "https://"


def check_etcd(settings: EtcdFields, *, used_by: str) -> None:
    """Raise ValueError for the first invalid combination, with a sentence for the operator.

    `used_by` is the setting or command that uses etcd, for example `store etcd`; empty if nothing does.
    """
    if not used_by:
        return
    if not settings.etcd_endpoints:
        raise ValueError(
            f"{used_by} needs {LOCATION}, the client URLs of etcd's members, for example https://10.0.0.1:2379"
        )
    for one, other in (("etcd_certificate", "etcd_key"), ("etcd_key", "etcd_certificate")):
        if getattr(settings, one) is not None and getattr(settings, other) is None:
            raise ValueError(f"{one} requires {other}: set {other} too, or remove {one}")
    if settings.etcd_certificate is None and settings.etcd_user_file is None and _is_secured(settings):
        raise ValueError(
            f"{used_by} needs a client certificate (etcd_certificate and etcd_key), or etcd_user_file, "
            "because otherwise everybody who reaches etcd could write the mesh"
        )


def _is_secured(settings: EtcdFields) -> bool:
    return any(endpoint.startswith(_SECURED) for endpoint in settings.etcd_endpoints)
