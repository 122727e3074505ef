"""The Envoy driver: ProxyPolicy in, encoded xDS resources out, and Envoy's bootstrap.

`pieces.parts` divides a policy into pieces with the narrowest possible arguments. Each piece is made by the
package of its resource kind: `listeners`, `routes`, `clusters` (with endpoints) and `security` (secrets).
`features` has one module for each HTTP feature, and `rules` translates policy rules into Envoy's matchers.
`validation` checks resources by the rules of Envoy before they are sent. `control_plane` serves them, and
`bootstrap` makes Envoy's start file.

Except for the control plane these are pure functions. Read `driver` next, then `pieces`.

The package never reads policy objects, opens a socket, or uses a field that is deprecated in Envoy 1.40.
"""
