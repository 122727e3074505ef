"""Problems between objects and sidecar drivers: unknown drivers and missing capabilities. Pure functions."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from catalog.lint.wording import problem_of
from catalog.policy.group_policy import proxy_policy
from catalog.relations.groups import ProxyGroup, groups_of, namespace_driver
from catalog.store.objects import workload_object
from catalog.store.view import View, config_in_force
from meshwright.engine.derived import derived
from meshwright.mesh.config import SidecarSettings
from meshwright.mesh.kinds import WORKLOAD
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem, Problems, Severity, ordered
from meshwright.mesh.workload import DRIVER_ANNOTATION, WorkloadKey
from meshwright.sidecars.codes import Code
from meshwright.sidecars.contract.driver import Capability, SidecarDriver
from meshwright.sidecars.contract.errors import DriverError, DuplicateDriverError, UnknownDriverError
from meshwright.sidecars.contract.selection import select
from meshwright.sidecars.requirements import Requirement, requirements

_EVERYTHING: Final = frozenset(Capability)
_CLASS: Final = "spec.sidecar.sidecarClass"
_NO_MTLS: Final = "spec.sidecar.sidecarDrivers.sidecarDisabledMTLS"
_FIELD: Final = f"metadata.annotations.{DRIVER_ANNOTATION}"


@dataclass(frozen=True, slots=True, eq=False)
class InstalledDrivers:
    """Installed drivers, the environment that selects one, and the names of running drivers (None: all)."""

    drivers: Mapping[str, SidecarDriver]
    environment: Mapping[str, str]
    running: Collection[str] | None = None

    @property
    def ports(self) -> Mapping[str, int]:
        """The default ports of the installed drivers' control planes, by driver name."""
        return {name: driver.proxy_server_port for name, driver in self.drivers.items()}

    def driver_of(self, config: SidecarSettings, named: str) -> SidecarDriver:
        """Return the driver of a group; raise UnknownDriverError or DuplicateDriverError."""
        return self.drivers[select(config, self.environment, self.ports, named).driver]

    def of_mesh(self, view: View) -> Problems:
        """Return the problems with drivers in the MeshConfig."""
        return tuple(_of_config(view, self))

    def fine(self, view: View) -> frozenset[str]:
        """Return the drivers that run and have every capability; the empty name is the default driver."""
        return frozenset(named for named in ("", *self.drivers) if self._is_fine(view, named))

    def of_workload(self, view: View, key: WorkloadKey) -> Problems:
        """Return the problems between a workload and its driver."""
        return tuple(
            problem for group in groups_of(view, key) for problem in _of_group(view, self, group, key)
        )

    def _is_fine(self, view: View, named: str) -> bool:
        try:
            driver = self.driver_of(view.config.sidecar, named)
        except DriverError:
            return False
        return self.runs(driver) and driver.capabilities >= _EVERYTHING

    def runs(self, driver: SidecarDriver) -> bool:
        """Return whether a driver was started."""
        return self.running is None or driver.name in self.running


def problems(view: View, installed: InstalledDrivers) -> Problems:
    """Return all problems between objects and drivers, without duplicates, in the order of objects."""
    of_workloads = (problem for key in view.workloads for problem in installed.of_workload(view, key))
    return ordered((*installed.of_mesh(view), *of_workloads))


def _of_config(view: View, installed: InstalledDrivers) -> Iterator[Problem]:
    key = config_in_force(view)
    if key is None:
        return
    config = view.config.sidecar
    if config.sidecar_class and config.sidecar_class not in installed.drivers:
        known = ", ".join(sorted(installed.drivers))
        wanted = (
            "A driver of this name is not installed, so its proxies keep their configuration. "
            f"Use the name of an installed driver: {known}."
        )
        value = config.sidecar_class
        yield problem_of(view, key, Code.UNKNOWN_DRIVER, Severity.ERROR, _CLASS, value, wanted)
    for entry in config.drivers:
        if entry.disabled_mtls:
            wanted = (
                "Mutual TLS cannot be disabled, so the proxies of this driver keep using mutual TLS. "
                "Remove the field, or set it to false."
            )
            yield problem_of(view, key, Code.NO_MTLS, Severity.ERROR, _NO_MTLS, entry.name, wanted)
    names = [entry.name for entry in config.drivers]
    for name in sorted({item for item in names if names.count(item) > 1}):
        wanted = (
            "The list has more than one entry for this driver, so its proxies keep their configuration. "
            "Keep one entry for each driver."
        )
        yield problem_of(
            view, key, Code.DRIVER_TWICE, Severity.ERROR, "spec.sidecar.sidecarDrivers", name, wanted
        )


def _of_group(
    view: View, installed: InstalledDrivers, group: ProxyGroup, key: WorkloadKey
) -> Iterator[Problem]:
    """Yield the problems between a group and its driver, reported at one workload of the group."""
    try:
        driver = installed.driver_of(view.config.sidecar, group.driver)
    except DuplicateDriverError:
        return  # reported at the MeshConfig
    except UnknownDriverError as error:
        if group.driver:
            named_by, field = _naming(view, key)
            yield problem_of(
                view, named_by, Code.UNKNOWN_DRIVER, Severity.ERROR, field, group.driver, f"{error}"
            )
        return
    if not installed.runs(driver):
        wanted = (
            "The driver is installed, but the control plane did not start it, because objects did not need "
            "the driver at that time. Restart the control plane."
        )
        named_by, field = _naming(view, key)
        yield problem_of(view, named_by, Code.NOT_STARTED, Severity.ERROR, field, driver.name, wanted)
    if driver.capabilities >= _EVERYTHING:
        return  # no policy is computed for it
    for requirement in needed(view, group):
        if requirement.capability not in driver.capabilities:
            yield _incapable(view, key, driver.name, requirement)


@derived
def needed(view: View, group: ProxyGroup) -> tuple[Requirement, ...]:
    """Return the capabilities that a group's policy needs, sorted; computed once for the whole group."""
    return requirements(proxy_policy(view, group))


def _incapable(view: View, workload: WorkloadKey, driver: str, requirement: Requirement) -> Problem:
    key = workload_object(view, workload)
    because = str(requirement.by)
    if requirement.by == WORKLOAD:
        because = (
            "the workload's own interception"
            if key.kind == WORKLOAD
            else "a Pod (its traffic counts as intercepted)"
        )
    wanted = (
        f"This driver does not support {requirement.capability}, which {because} needs, so that part is "
        "left out. Choose another driver, or change the object."
    )
    return problem_of(view, key, Code.INCAPABLE, Severity.ERROR, _FIELD, driver, wanted)


def _naming(view: View, workload: WorkloadKey) -> tuple[ObjectKey, str]:
    """Return the object that names a workload's driver, with the field: workload, namespace or MeshConfig.

    If only the environment names the driver, the problem is reported at the workload.
    """
    config = config_in_force(view)
    # The same precedence as in `contract.selection.select`.
    if view.workloads[workload].driver:
        return workload_object(view, workload), _FIELD
    if namespace_driver(view, workload.namespace):
        return ObjectKey.of_namespace(workload.namespace), _FIELD
    if config is not None and view.config.sidecar.sidecar_class:
        return config, _CLASS
    return workload_object(view, workload), _FIELD
