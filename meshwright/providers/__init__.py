"""Sources of objects, workloads and endpoints: read, kept current and merged.

All input and output of the input side is in this package; `meshwright.specs` reads the manifests. A source is
a directory of manifests, a cluster, the DNS, or a provider from an installed package. `contract` has the
protocol of a source, `objects` the state that most sources share, and `merge` and `sources` combine all
sources of a mesh into one.

A source keeps its last good result and reports its age, so that an error never removes an object. Sources
never decide policy, and know of no proxies. Start reading with `contract`.
"""
