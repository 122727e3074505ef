"""Installation of Meshwright: the chart, its values, and its rendering without Helm.

    chart/meshwright  the chart: the only place of the manifests
    values            the values as types; values.schema.json is generated from them
    overrides         values from files and the command line, merged as Helm does
    template/         parser and renderer of the part of Go's templates that the chart uses
    rendering         from values to manifests, as `helm template` prints them

`meshwright install --print` renders the chart's own templates, so that there are no second manifests to keep
equal. Tests compare the result with Helm's. Continue with `rendering`.
"""
