"""Writers of Events about objects.

    writer         Events about the objects of the mesh
    one_object     Events about one other object, for example the ConfigMap of the injection
    patience       delays problems that usually end by themselves
    open_problems  reads unresolved problems from Events, for commands

The Events themselves are values of `meshwright.kubernetes.status.event`. This package never writes a status.
"""
