"""What is wrong between objects and drivers: who is named that is not there, what cannot be done. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from catalog.lint.told import say
from catalog.policy.whole import proxy_policy
from catalog.relations.groups import ProxyGroup, members, namespace_driver
from catalog.store.objects import workload_object
from catalog.store.view import View, config_order, configs
from mesh.config import SidecarSettings
from mesh.kinds import WORKLOAD
from mesh.objects import ObjectKey
from mesh.problems import Problem, Problems, Severity, ordered
from mesh.workload import DRIVER_ANNOTATION
from sidecars.codes import Code
from sidecars.contract.driver import Capability, SidecarDriver
from sidecars.contract.errors import DriverError, DuplicateDriverError, UnknownDriverError
from sidecars.requirements import Requirement, requirements
from sidecars.selection import select

_EVERYTHING: Final = frozenset(Capability)
_CLASS: Final = "spec.sidecar.sidecarClass"
_NO_MTLS: Final = "spec.sidecar.sidecarDrivers.sidecarDisabledMTLS"
_FIELD: Final = f"metadata.annotations.{DRIVER_ANNOTATION}"


@dataclass(frozen=True, slots=True)
class Installed:
    """The drivers there are, the environment that chooses, and which drivers run; None: all of them."""

    drivers: Mapping[str, SidecarDriver]
    environment: Mapping[str, str]
    running: Collection[str] | None = None

    @property
    def ports(self) -> Mapping[str, int]:
        """The drivers' default ports by name."""
        return {name: driver.proxy_server_port for name, driver in self.drivers.items()}

    def driver_of(self, config: SidecarSettings, named: str) -> SidecarDriver:
        """Return the driver of a group; raise UnknownDriverError or DuplicateDriverError."""
        return self.drivers[select(config, self.environment, self.ports, named).driver]


def problems(view: View, installed: Installed) -> Problems:
    """Return everything that is wrong, each problem once, in the order of objects.

    Groups of a driver that runs, and can do everything, cost a look each.
    """
    found, fine = list(_of_config(view, installed)), dict[str, bool]()
    for group in members(view):
        if group.driver not in fine:
            fine[group.driver] = _is_fine(view, installed, group.driver)
        if not fine[group.driver]:
            found.extend(_of_group(view, installed, group))
    return ordered(found)


def _is_fine(view: View, installed: Installed, named: str) -> bool:
    """Say whether nothing can be wrong with groups that name this driver."""
    try:
        driver = installed.driver_of(view.config.sidecar, named)
    except DriverError:
        return False
    runs = installed.running is None or driver.name in installed.running
    return runs and driver.capabilities >= _EVERYTHING


def _of_config(view: View, installed: Installed) -> Iterator[Problem]:
    key = min(configs(view), key=config_order, default=None)
    if key is None:
        return
    config = view.config.sidecar
    if config.sidecar_class and config.sidecar_class not in installed.drivers:
        known = ", ".join(sorted(installed.drivers))
        wanted = f"must be the name of a driver that is installed: {known}"
        value = config.sidecar_class
        yield say(view, key, Code.UNKNOWN_DRIVER, Severity.ERROR, _CLASS, value, wanted)
    for entry in config.drivers:
        if entry.disabled_mtls:
            wanted = "must be false or absent: there is no mesh without mutual TLS, and it stays"
            yield say(view, key, Code.NO_MTLS, Severity.ERROR, _NO_MTLS, entry.name, wanted)
    names = [entry.name for entry in config.drivers]
    for name in sorted({each for each in names if names.count(each) > 1}):
        wanted = "must have one entry for each driver"
        yield say(view, key, Code.DRIVER_TWICE, Severity.ERROR, "spec.sidecar.sidecarDrivers", name, wanted)


def _of_group(view: View, installed: Installed, group: ProxyGroup) -> Iterator[Problem]:
    try:
        driver = installed.driver_of(view.config.sidecar, group.driver)
    except DuplicateDriverError:
        return  # MeshConfig's affair
    except UnknownDriverError as error:
        if group.driver:
            for key, field in _naming(view, group):
                yield say(view, key, Code.UNKNOWN_DRIVER, Severity.ERROR, field, group.driver, f"{error}")
        return
    if installed.running is not None and driver.name not in installed.running:
        wanted = "it was not needed when the control plane started; start that again"
        for key, field in _naming(view, group):
            yield say(view, key, Code.NOT_STARTED, Severity.ERROR, field, driver.name, wanted)
    for requirement in requirements(proxy_policy(view, group)):
        if requirement.capability not in driver.capabilities:
            yield from _incapable(view, group, driver.name, requirement)


def _incapable(view: View, group: ProxyGroup, driver: str, requirement: Requirement) -> Iterator[Problem]:
    for workload in members(view)[group]:
        key = workload_object(view, workload)
        because = str(requirement.by)
        if requirement.by == WORKLOAD:
            because = (
                "its own interception" if key.kind == WORKLOAD else "a Pod, which is taken for intercepted"
            )
        wanted = (
            f"cannot do {requirement.capability}, which is needed for {because}: "
            "choose another driver, or change that"
        )
        yield say(view, key, Code.INCAPABLE, Severity.ERROR, _FIELD, driver, wanted)


def _naming(view: View, group: ProxyGroup) -> Iterator[tuple[ObjectKey, str]]:
    """Yield the objects that name a group's driver, with the field: workloads, their namespace, MeshConfig.

    Where none does, the environment has: then it is said of the workloads.
    """
    for workload in members(view)[group]:
        config = min(configs(view), key=config_order, default=None)
        if view.workloads[workload].driver:
            yield workload_object(view, workload), _FIELD
        elif namespace_driver(view, workload.namespace):
            yield ObjectKey.of_namespace(workload.namespace), _FIELD
        elif config is not None and view.config.sidecar.sidecar_class:
            yield config, _CLASS
        else:
            yield workload_object(view, workload), _FIELD
