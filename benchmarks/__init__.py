"""Benchmarks: programs that measure the control plane, print a table and write JSON.

    python -m benchmarks                     all programs with goals, and the table of goals
    python -m benchmarks.fanout --quick      one program with a small load

Each program measures servers from outside, next to a peer with the same load. `meshes/` generates meshes,
`processes/` starts servers and load generators, `measurements/` measures a served mesh, `peers/` has the
other servers, and `figures/` has results and goals. `replicas/` has servers of one mesh in simulated time.
A program never fails because of a time, since machines differ. The control plane never imports this package.
Read next: `__main__`, then `mesh`.
"""
