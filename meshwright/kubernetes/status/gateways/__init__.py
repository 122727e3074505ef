"""The status of Gateways and GatewayClasses.

    changes     follows the states of `catalog.relations.gateways`
    conditions  conditions of a gateway and its listeners, made from its state
    own_status  the part of a status that Meshwright owns, read from and merged into an object
    writer      reads an object, changes its status, and writes it back

Other controllers may have conditions in the same status, so it is changed by read, modify and write. This
package never decides what a gateway serves.
"""
