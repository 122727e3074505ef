"""Access to the cluster from which the mesh is read, with its source and saved state.

A server without a cluster does not import this module, to save the memory of its libraries.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self

from meshwright.controller.errors import StartupError
from meshwright.controller.kubernetes.home import home
from meshwright.controller.settings.settings import Settings
from meshwright.controller.state_files import Form, PersistentValue
from meshwright.kube.api import Api
from meshwright.kube.connection.connection import find_connection
from meshwright.kube.errors import KubeError
from meshwright.mesh.names import is_dns_label
from meshwright.providers.guard import HOLD
from meshwright.providers.kubernetes import last_state as kept
from meshwright.providers.kubernetes.scope import Scope
from meshwright.providers.kubernetes.source import PATIENCE, KubernetesSource

_NAME_RULE: Final = "must be 1 to 63 of a-z, 0-9 and inner hyphens"

ANSWER: Final[Form[kept.SavedState]] = Form(
    "kubernetes-answer.json",
    kept.SavedState(),
    kept.read,
    kept.written,
    "saved cluster objects cannot be used; the server waits for the API server",
    "cluster objects cannot be saved; a restart without the API server begins with older ones",
)
"""The last state reported by the API server."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Access to a cluster and selection of its namespaces, from the settings.

    `home` is the control plane's own namespace, empty for the namespace of this Pod.
    """

    kubeconfig: Path | None = None
    context: str = ""
    namespaces: tuple[str, ...] = ()
    selector: str = ""
    home: str = ""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the kubeconfig, context and namespaces of the mesh's cluster, from the settings."""
        return cls(
            settings.kubeconfig, settings.kube_context, settings.namespaces, settings.namespace_selector
        )


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster with a source; `home` is the control plane's own namespace.

    `api` must be open while the source works.
    """

    api: Api
    source: KubernetesSource
    scope: Scope
    home: str


def cluster(
    access: ClusterAccess,
    clock: Callable[[], datetime],
    answers: PersistentValue[kept.SavedState] | None = None,
    *,
    hold: timedelta = HOLD,
    patience: timedelta = PATIENCE,
) -> Cluster:
    """Find a cluster and make its source, without any request. Raises StartupError.

    The source starts with the saved `answers`, and saves new ones. `hold` and `patience` are as for the
    source.
    """
    # Checked early, because the namespace becomes part of label selectors and URLs.
    here = access.home or home(os.environ)
    if not is_dns_label(here):
        raise StartupError(f"the control plane's namespace is {here!r}: {_NAME_RULE}")
    try:
        api = Api(find_connection(access.kubeconfig, access.context))
        scope = Scope.from_settings(access.namespaces, access.selector, here)
    except (KubeError, ValueError) as error:
        raise StartupError(" ".join(str(error).split())) from error
    known, keep = (None, None) if answers is None else (answers.load(), answers.keep)
    source = KubernetesSource(api, scope, clock, hold=hold, patience=patience, kept=known, keep=keep)
    return Cluster(api, source, scope, here)
