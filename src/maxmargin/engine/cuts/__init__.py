"""What cutting-plane solvers are made of: candidates, aggregated planes, and their master problem.

Kernels live here and not beside the solvers, so that work on a solver's outer loop does not make
every compiled function of the package compile again.
"""
