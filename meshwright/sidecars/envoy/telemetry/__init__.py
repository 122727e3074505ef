"""Access logs, and the names of Envoy's statistics, which agents read."""
