"""The file with the objects in etcd that a server has read last."""

from typing import Final

from meshwright.controller.state_files import Form
from meshwright.etcd.values import KeyValue
from meshwright.providers.etcd import last_objects

ETCD_OBJECTS: Final[Form[tuple[KeyValue, ...]]] = Form(
    "etcd-objects.json",
    (),
    last_objects.read,
    last_objects.written,
    "saved objects of etcd cannot be used; the server waits for etcd",
    "objects of etcd cannot be saved; a restart without etcd begins with older ones",
)
"""The last keys with objects in etcd."""
