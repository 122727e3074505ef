"""Installation: the chart's values as types, and its manifests, rendered without Helm.

    values     the values of an installation as types; values.schema.json is generated from them
    overrides  values from files and the command line, merged as Helm merges them
    template/  the subset of Go's templates in which the chart is written
    rendering  values in, manifests out: the output of `helm template`

The chart itself is in `deploy/chart/meshwright`, the only place with the manifests of an installation.
`meshwright install --print` renders the chart's own templates, and tests compare the result with Helm's. The
package never contacts a cluster.
"""
