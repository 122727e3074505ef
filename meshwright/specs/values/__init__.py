"""Values in manifests that several kinds share: durations, quantities, references, protocols.

It never reads a whole manifest.
"""
