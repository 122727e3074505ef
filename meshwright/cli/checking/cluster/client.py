"""Client for checking a cluster: lists each kind once, and limits the time of each check."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from meshwright.cli.checking.judgements.check import Check, UnavailableCheck
from meshwright.cli.checking.judgements.permissions import Need
from meshwright.kube.api import Api
from meshwright.kube.errors import ApiError, KubeError
from meshwright.kube.resource import Raw, Resource

SECONDS: Final = 60.0
"""Seconds for all requests of one check; an unreachable server fails earlier."""

_SELF: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
_OTHER: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)


class ClusterClient:
    """Requests to an API server; each list is requested only once and shared."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._lists: dict[tuple[Resource, str | None, str], asyncio.Task[Sequence[Raw]]] = {}

    async def all(self, resource: Resource, namespace: str | None = None, labels: str = "") -> Sequence[Raw]:
        """Return all objects of a kind; raise KubeError."""
        key = (resource, namespace, labels)
        if key not in self._lists:
            asked = self._listed(resource, namespace, labels)
            self._lists[key] = asyncio.create_task(asked, name=f"look at {resource}")
        # Shielded, because a look that runs out of time must not cancel a list which others wait for.
        return await asyncio.shield(self._lists[key])

    async def _listed(self, resource: Resource, namespace: str | None, labels: str) -> Sequence[Raw]:
        return list((await self.api.list(resource, namespace, labels=labels))["items"])

    async def end(self) -> None:
        """Cancel pending lists, and wait until they have ended."""
        for task in self._lists.values():
            task.cancel()
        await asyncio.gather(*self._lists.values(), return_exceptions=True)

    async def one(self, resource: Resource, namespace: str | None, name: str) -> Raw | None:
        """Return an object, or None for a missing one; raise KubeError."""
        try:
            return await self.api.get(resource, namespace, name)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    async def may(self, needs: Sequence[Need], user: str = "") -> Mapping[Need, bool | UnavailableCheck]:
        """Return for each need whether we, or `user` (a ServiceAccount), have the permission.

        The value is an UnavailableCheck if the API server does not answer.
        """
        answers = await asyncio.gather(*(self._may(need, user) for need in needs))
        return dict(zip(needs, answers, strict=True))

    async def _may(self, need: Need, user: str) -> bool | UnavailableCheck:
        resource, _, subresource = need.resource.partition("/")
        attributes = {
            "verb": need.verb,
            "group": need.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": need.namespace,
            "name": need.name,
        }
        spec: dict[str, Any] = {"resourceAttributes": attributes}
        review = _OTHER if user else _SELF
        if user:
            _, _, namespace, _ = user.split(":")
            # A SubjectAccessReview does not add the groups of a ServiceAccount itself.
            groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
            spec |= {"user": user, "groups": groups}
        body = {"apiVersion": review.api_version, "kind": review.kind, "spec": spec}
        try:
            answer = await self.api.create(review, None, body)
        except KubeError as error:
            return UnavailableCheck(str(error), "ask as an administrator of the cluster")
        return bool(answer.get("status", {}).get("allowed"))


async def looked(name: str, look: Callable[[], Awaitable[Check | Sequence[Check]]]) -> Sequence[Check]:
    """Run one look with its time limit; return the checks, or one check with the reason of a failure."""
    try:
        async with asyncio.timeout(SECONDS):
            result = await look()
    except TimeoutError:
        return (Check.unseen(name, UnavailableCheck(f"timed out after {SECONDS:g} s")),)
    except ApiError as error:
        do = "ask as an administrator of the cluster" if error.is_forbidden else "try again"
        return (Check.unseen(name, UnavailableCheck(str(error), do)),)
    except KubeError as error:
        return (Check.unseen(name, UnavailableCheck(str(error))),)
    except Exception as error:  # noqa: BLE001 - any error becomes the text of this check
        return (Check.unseen(name, UnavailableCheck(" ".join(f"{type(error).__name__}: {error}".split()))),)
    return (result,) if isinstance(result, Check) else result
