"""The checks of `meshwright check --kubernetes`, which never write to the cluster."""
