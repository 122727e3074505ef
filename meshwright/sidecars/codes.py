"""Stable codes of problems between the mesh's objects and the installed sidecar drivers."""

from meshwright.mesh.problems.codes import ProblemCode


class Code(ProblemCode):
    """The code of a problem, with one line of explanation in `doc`. Codes MW30xx are about drivers."""

    UNKNOWN_DRIVER = (
        "MW3001",
        "The sidecar driver of an object is not installed; the driver's proxies keep their configuration.",
    )
    NOT_STARTED = "MW3002", "A workload's sidecar driver is installed, but its control plane was not started."
    INCAPABLE = (
        "MW3003",
        "A policy needs a capability that the workload's sidecar driver lacks; that part is left out.",
    )
    DRIVER_TWICE = (
        "MW3004",
        "MeshConfig has two entries for one sidecar driver; the driver's proxies keep their configuration.",
    )
    NO_MTLS = (
        "MW3005",
        "A sidecar driver's entry disables mutual TLS, which is not possible; mutual TLS stays on.",
    )
