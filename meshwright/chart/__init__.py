"""How Meshwright is installed: the chart, its values, and what it comes to with and without Helm.

    chart/meshwright  the chart: the one place where the manifests stand
    values            what can be said of an installation, as types; values.schema.json is made of them
    overriding        values from files and the command line, merged as Helm merges them
    template/         the part of Go's templates that the chart is written in, read and rendered
    rendering         values in, manifests out: what `helm template` prints

`meshwright install --print` renders the chart's own templates, so that there is nothing to keep equal; that
both come to the same objects is tested against Helm.
"""
