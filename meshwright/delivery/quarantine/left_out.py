"""The parts of policy that proxies are served without, as whoever explains the mesh reads them."""

from dataclasses import dataclass

from meshwright.mesh.identity import ProxyName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HTTPMatch


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of policy that proxies are served without, because it is refused; what it would allow is denied.

    `match` of the HTTPRouteGroup `object`: it is out of every rule and split that names it. Without one it
    is the whole of a TrafficTarget, TrafficSplit or Retry, what an UpstreamTrafficSetting or UpstreamPolicy
    says of one thing, or the permissive mode that a Namespace or MeshConfig says. `said` are the words of who
    refuses it. It is `certain`, or only suspected and soon tried again.
    """

    object: ObjectKey
    match: HTTPMatch | None
    proxies: tuple[ProxyName, ...]
    said: str
    certain: bool
