"""Controllers of pods: who is going to run, and under which labels and identity.

Read is the template that their pods are made of. Other fields may hold anything.
"""

from meshwright.mesh.kinds import POD
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.workload import PodTemplate, WorkloadKey
from meshwright.specs.codes import Code
from meshwright.specs.core.endpoints import of_pods
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import Manifest
from meshwright.specs.object_meta import check_metadata_fields
from meshwright.specs.own_names import check_own_names
from meshwright.specs.own_values import check_own_values


def pod_template(manifest: Manifest) -> PodTemplate | None:
    """Read a DaemonSet or Job."""
    return _template(manifest, manifest.body.section("spec"))


def scaled_template(manifest: Manifest) -> PodTemplate | None:
    """Read a Deployment, StatefulSet, ReplicaSet or ReplicationController, which say how many pods they have.

    One that another controller made and that has no pods, such as the last ReplicaSet of a Deployment, is
    not used: what it has may be long out of date.
    """
    spec = manifest.body.section("spec")
    if spec.raw("replicas") == 0 and manifest.metadata.items("ownerReferences"):
        return None
    return _template(manifest, spec)


def cron_job(manifest: Manifest) -> PodTemplate | None:
    """Read a CronJob: the template of its Jobs' pods."""
    return _template(manifest, manifest.body.section("spec").section("jobTemplate").section("spec"))


def template_object(manifest: Manifest) -> PodTemplate | None:
    """Read a PodTemplate, which has its template beside metadata."""
    return _template(manifest, manifest.body)


def _template(manifest: Manifest, fields: Fields) -> PodTemplate | None:
    """Read the template; a document without one is a patch, or nothing that Kubernetes would take."""
    template = fields.section("template")
    if not template.names():
        manifest.notes.inform(
            Code.NOT_USED,
            template.path,
            "is missing; the mesh does not use this object without a Pod template",
        )
        return None
    key = ObjectKey(POD, manifest.namespace, manifest.key.name)
    pods = Manifest(key, manifest.version, template, template.section("metadata"), manifest.notes)
    check_own_names(pods)
    check_own_values(pods)
    check_metadata_fields(pods)
    return of_pods(pods, manifest.key.kind, WorkloadKey(manifest.namespace, manifest.key.name))
