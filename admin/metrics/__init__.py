"""What is counted and measured, in Prometheus' terms."""
