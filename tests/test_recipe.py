"""The conda recipe names the same version and dependencies as pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml  # dask, of the extra `distributed`, needs it

import maxmargin

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONDA_NAMES = {"matplotlib": "matplotlib-base"}
RECIPE = ROOT / "packaging/conda/recipe.yaml"


@pytest.fixture
def recipe():
    """The recipe with the values of its context filled in."""
    text = RECIPE.read_text("utf-8")
    context = yaml.safe_load(text)["context"]
    return yaml.safe_load(re.sub(r"\$\{\{ (\w+) \}\}", lambda found: context[found[1]], text))


def as_conda(requirements):
    """The requirements of pyproject.toml, as a conda recipe writes them."""
    found = (re.fullmatch(r"([\w-]+)(.*)", requirement) for requirement in requirements)
    return {f"{CONDA_NAMES.get(match[1], match[1])} {match[2]}" for match in found}


def test_the_version_is_that_of_the_source(recipe):
    assert recipe["package"] == {"name": PROJECT["name"], "version": maxmargin.__version__}


def test_run_requirements_are_those_of_the_package(recipe):
    expected = as_conda(PROJECT["dependencies"]) | {f"python {PROJECT['requires-python']}"}
    assert set(recipe["requirements"]["run"]) == expected


def test_constraints_are_those_of_the_extras(recipe):
    extras = PROJECT["optional-dependencies"]
    expected = as_conda([*extras["plot"], *extras["progress"], *extras["distributed"]])
    assert set(recipe["requirements"]["run_constraints"]) == expected


def test_the_build_backend_is_that_of_the_project(recipe):
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    assert as_conda(needed) < set(recipe["requirements"]["host"])


def test_the_command_is_that_of_the_project(recipe):
    (entry,) = recipe["build"]["python"]["entry_points"]
    assert dict([entry.split(" = ")]) == PROJECT["scripts"]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert (ROOT / recipe["about"]["license_file"]).exists()
