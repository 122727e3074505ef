"""Other xDS servers (peers) with the same resources and the same load as ours, for comparison."""
