"""Controllers of Pods, for the labels and identity of future Pods.

Only the Pod template is read; other fields may have any value.
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
    """Read the Pod template of a DaemonSet or Job."""
    return _template(manifest, manifest.body.section("spec"))


def scaled_template(manifest: Manifest) -> PodTemplate | None:
    """Read a Deployment, StatefulSet, ReplicaSet or ReplicationController, which have a number of replicas.

    An object with an owner and no replicas is not used, for example the previous ReplicaSet of a Deployment,
    because its template may be long out of date.
    """
    spec = manifest.body.section("spec")
    if spec.raw("replicas") == 0 and manifest.metadata.items("ownerReferences"):
        return None
    return _template(manifest, spec)


def cron_job(manifest: Manifest) -> PodTemplate | None:
    """Read the Pod template of a CronJob, for the Pods of its Jobs."""
    return _template(manifest, manifest.body.section("spec").section("jobTemplate").section("spec"))


def template_object(manifest: Manifest) -> PodTemplate | None:
    """Read a PodTemplate, which has its template beside metadata."""
    return _template(manifest, manifest.body)


def _template(manifest: Manifest, fields: Fields) -> PodTemplate | None:
    """Read the template; a document without one is a patch, or would be invalid in Kubernetes."""
    template = fields.section("template")
    if not template.names():
        manifest.notes.inform(
            Code.NOT_USED,
            template.path,
            "is missing; the mesh does not use this object without a Pod template",
        )
        return None
    key = ObjectKey(POD, manifest.namespace, manifest.key.name)
    # A template has the labels and annotations of a Pod, so it is checked as a Pod.
    pods = Manifest(key, manifest.version, template, template.section("metadata"), manifest.notes)
    check_own_names(pods)
    check_own_values(pods)
    check_metadata_fields(pods)
    return of_pods(pods, manifest.key.kind, WorkloadKey(manifest.namespace, manifest.key.name))
