"""What a kubelet, Prometheus and a shutdown hook ask of the agent."""
