"""Settings of the MeshConfig in force, one firewall each.

Each setting has many readers that need no other one, so they are not affected by changes of the others.
"""

from typing import Final

from catalog.store.view import IN_VIEW, View
from meshwright.engine.derived import derived
from meshwright.mesh.config import SidecarSettings, Tracing
from meshwright.mesh.policies.authorization import Authorizer


@derived
def _permissive(view: View) -> bool:
    return view.config.permissive


@derived
def _egress(view: View) -> bool:
    return view.config.egress


@derived
def _authorization(view: View) -> Authorizer | None:
    return view.config.authorization


@derived
def _tracing(view: View) -> Tracing | None:
    return view.config.tracing


@derived
def _sidecar(view: View) -> SidecarSettings:
    return view.config.sidecar


permissive: Final = IN_VIEW.firewall(_permissive)
egress: Final = IN_VIEW.firewall(_egress)
authorization: Final = IN_VIEW.firewall(_authorization)
tracing: Final = IN_VIEW.firewall(_tracing)
sidecar: Final = IN_VIEW.firewall(_sidecar)
