"""The checks of `meshwright agent check`, which never change the machine."""
