"""Other servers with the same resources and the same load as ours."""
