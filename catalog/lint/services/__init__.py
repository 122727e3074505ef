"""Problems of Services and of the workloads behind them.

It never changes what is enforced.
"""
