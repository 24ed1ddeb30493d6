"""What solvers are made of: rows and parts, planes and their store, steps, cuts, counted work."""
