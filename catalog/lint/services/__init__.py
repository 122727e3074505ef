"""Problems of Services and of their workloads. These checks never change the policy of proxies."""
