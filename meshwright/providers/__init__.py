"""Sources: where objects, workloads and endpoints come from, kept current and merged.

All input and output of the input side is here; `meshwright.specs` reads the manifests. A source keeps its
last good result and shows its age. It never decides policy, knows a proxy, or removes objects because of an
error.
"""
