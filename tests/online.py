"""What tests of online solvers share."""

from types import SimpleNamespace

import numpy as np

from cases import BASIC_KINDS, make_case
from maxmargin.core.formulation import Formulation
from maxmargin.solvers import SOLVERS, make_solver

ONLINE = [name for name, solver in SOLVERS.items() if not solver.certified]
FUSED = [True, False]  # whether the problem steps through examples by itself


def solve(name, problem, C=0.5, formulation=None, **arguments):
    """Run a solver by name; parameters of `solve` are told from those of the solver."""
    call = {
        key: arguments.pop(key)
        for key in ("sample_weight", "warm_start", "callbacks")
        if key in arguments
    }
    solver = make_solver(name, **{"random_state": 0, **arguments})
    return solver.solve(problem, formulation or Formulation(), C, **call)


def bare(problem):
    """The problem with nothing but its batch oracle and its searches."""
    return SimpleNamespace(
        n_examples=problem.n_examples,
        n_features=problem.n_features,
        oracle=problem.oracle,
        predictions=problem.predictions,
        k_best=problem.k_best,
        trusted=True,
    )


def draw(seed):
    """A random problem, formulation, C and weights."""
    rng = np.random.default_rng(seed)
    structure, loss = BASIC_KINDS[rng.integers(len(BASIC_KINDS))]
    options = {"loss": loss, "fit_intercept": bool(rng.integers(2))}
    if structure == "chain":
        options |= {name: bool(rng.integers(2)) for name in ("boundary_weights", "constrained")}
    options["layout"] = str(rng.choice(["dense", "csr"]))
    case = make_case(structure, rng, **options)
    formulation = Formulation(str(rng.choice(["margin", "slack", "none"])))
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], case.problem.n_examples)
    weights[rng.integers(len(weights))] = 1.0
    return case, formulation, float(10 ** rng.uniform(-1.5, 1)), weights


def tagging(n=40, seed=0, noise=0.5):
    """Sequences that can be learned, with some noise."""
    from maxmargin.problems.chain.problem import ChainProblem

    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 6, n)
    labels = rng.integers(0, 3, lengths.sum())
    tokens = np.eye(3)[labels] + noise * rng.normal(size=(len(labels), 3))
    return ChainProblem(tokens, np.concatenate([[0], np.cumsum(lengths)]), labels, 3)
