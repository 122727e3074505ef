"""Text of manifests: documents, YAML values and the line of each problem, without knowledge of kinds."""
