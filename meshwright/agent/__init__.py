"""What runs beside a proxy on its machine: the rules that lead traffic through it, and its life.

Decisions (rules, restarts, epochs, certificates, readiness) are pure; processes, sockets and clocks stand at
the edge. It will never decide policy, and it keeps nothing that is not made anew when it starts.
"""
