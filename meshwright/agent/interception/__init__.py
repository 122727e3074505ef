"""Interception: iptables rules for redirecting a network namespace's traffic through the proxy.

`settings` has the validated settings, `rules` translates them into rules (pure), and `netfilter` computes the
change from the rules in force to the wanted ones (pure). `iptables` runs the programs. `probing` verifies the
rules by connecting, without privileges.

The package never changes other rules.
"""
