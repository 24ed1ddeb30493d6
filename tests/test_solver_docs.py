"""The page about solvers and their docstrings: nothing in them that is not so."""

import dataclasses
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import maxmargin.solvers as solvers
from cases import multiclass_case
from maxmargin.core.formulation import Formulation
from maxmargin.solvers import SOLVERS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "solvers.md"
COLUMNS = ("solver", "paper", "algorithm", "deviations", "the paper's own")
CODE = re.compile(r"`([^`]+)`")


def table():
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    assert tuple(head) == COLUMNS
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def test_every_solver_has_its_row():
    assert sorted(row["solver"].strip("`") for row in table()) == sorted(SOLVERS)


@pytest.mark.parametrize("row", table(), ids=lambda row: row["solver"].strip("`"))
def test_the_papers_own_can_be_had(row):
    """The last column is code: it makes a solver, of that name, which trains."""
    case = multiclass_case(np.random.default_rng(0), n=12, K=3)
    C, n, name = 0.1, 12, row["solver"].strip("`")
    assert row["deviations"] and row["paper"]
    for code in CODE.findall(row["the paper's own"]):
        solver = eval(code, {**vars(solvers), "C": C, "n": n})
        assert solver.name == name or name == "auto"
        formulation = Formulation(slack=solver.slacks[0])
        result = solver.solve(case.problem, formulation, C)
        assert np.isfinite(result.w).all() and result.w.any()


@pytest.mark.parametrize("row", table(), ids=lambda row: row["solver"].strip("`"))
def test_the_page_lists_what_published_sets(row):
    solver = SOLVERS[row["solver"].strip("`")]
    if solver.as_published is None:
        with pytest.raises(ValueError, match=r"no paper has solver 'auto'; FASOLE\.published\(\)"):
            solver.published()
        return
    short, spelled, *_ = CODE.findall(row["the paper's own"])
    assert short == f"{solver.__name__}.published()"
    assert eval(spelled, vars(solvers)) == solver.published()
    assert set(re.findall(r"(\w+)=", spelled)) == set(solver.as_published)
    defaults = {field.name: field.default for field in dataclasses.fields(solver)}
    assert not [k for k, value in solver.as_published.items() if defaults[k] == value]
    changed = solver.published(max_passes=7)
    assert (
        changed.max_passes == 7
        and dataclasses.replace(changed, max_passes=solver.published().max_passes)
        == solver.published()
    )


@pytest.mark.parametrize("name", SOLVERS)
def test_every_docstring_tells_paper_and_deviations(name):
    text = inspect.getdoc(SOLVERS[name])
    head, _, notes = text.partition("Notes\n-----\n")
    assert "**Deviations**" in notes
    assert re.search(r"\b(19|20)\d\d\b", text) and len(notes) > 100
    section = head.partition("Parameters\n----------\n")[2]
    known = {field.name for field in dataclasses.fields(SOLVERS[name])}
    # What a note sets is a parameter, and so is what is described as one.
    assert set(re.findall(r"[`( ](\w+)=", notes)) <= known
    described = re.findall(r"^(\w+) : ", section, re.MULTILINE)
    assert set(described) <= known
    own = set(vars(SOLVERS[name]).get("__annotations__", {})) & known
    inherited = {"tol", "average"}  # with another default only
    assert own - inherited <= set(described)
