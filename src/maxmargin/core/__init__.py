"""The contract between problems and solvers: planes, formulations, objectives, results."""
