"""A directory of manifests, watched: what each file holds, and what stays in force when one goes bad."""
