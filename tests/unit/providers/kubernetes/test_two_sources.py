"""Tests of objects with the same key in a directory and in a cluster."""

from meshwright.mesh.kinds import SERVICE, WORKLOAD
from meshwright.providers.directory.manifests import Manifests
from meshwright.providers.kubernetes.book import Book
from meshwright.providers.kubernetes.scope import Scope
from meshwright.providers.merge import merge
from tests.meshes import texts
from tests.unit.providers.kubernetes import objects
from tests.unit.providers.kubernetes.test_book import item, key

HERE = texts.joined(texts.workload("vm", "10.2.0.2"), texts.service("shop"))


def test_object_of_two_sources_is_taken_from_the_first_with_a_problem() -> None:
    """The problem names both places; an object of the same name in another namespace is separate."""
    directory = Manifests().apply("mesh.yaml", HERE)
    book = Book("east", Scope.from_settings()).taken(
        {
            key(WORKLOAD, "vm"): item(WORKLOAD, objects.workload("vm"), "7"),
            key(WORKLOAD, "vm", "books"): item(WORKLOAD, objects.workload("vm", namespace="books"), "8"),
            key(SERVICE, "more"): item(SERVICE, objects.service("more"), "9"),
        }
    )
    merged = merge([("directory", directory.objects()), ("kubernetes", book.state.objects())])
    assert [f"{sourced_object.origin}" for sourced_object in merged.objects().values()] == [
        "east (resourceVersion 9)",
        "mesh.yaml:6 (document 2)",
        "east (resourceVersion 8)",
        "mesh.yaml:1 (document 1)",
    ]
    (problem,) = merged.problems
    assert str(problem) == (
        "MW1108 east (resourceVersion 7): Workload shop/vm: the source directory has a "
        "different object of this name (mesh.yaml:1 (document 1)); the object of directory "
        "is used, because directory has precedence. Remove one of the two objects"
    )
    alone = merge([("directory", Manifests().objects()), ("kubernetes", book.state.objects())], merged)
    assert str(alone.objects()[key(WORKLOAD, "vm")].origin) == "east (resourceVersion 7)"
    assert alone.problems == ()


def test_service_and_workloads_of_cluster_and_directory_merge_without_problems() -> None:
    """Both workloads select the service by their labels, whichever source has them."""
    directory = Manifests().apply(
        "mesh.yaml", texts.workload("premises", "10.2.0.2", app="shop", account="shop")
    )
    from_cluster = {
        key(SERVICE, "shop"): item(SERVICE, objects.service("shop")),
        key(WORKLOAD, "vm"): item(WORKLOAD, objects.workload("vm")),
    }
    book = Book("east", Scope.from_settings()).taken(from_cluster)
    merged = merge([("directory", directory.objects()), ("kubernetes", book.state.objects())])
    assert merged.problems == ()
    assert len(merged.objects()) == 3
