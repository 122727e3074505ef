"""What `meshwright check` and `meshwright agent check` look at: each look has its time."""
