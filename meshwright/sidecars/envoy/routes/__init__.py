"""Route configurations (RDS), the virtual clusters that count requests, and the renewal of routes.

It never decides which route is in force: the policy has them in order.
"""
