"""Imports point one way, from the higher layers to the lower ones."""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "maxmargin"

# The lowest first; ARCHITECTURE.md has these lines too.
LAYERS = """\
    _version  utils
    jit  registry
    core
    search  time_left
    checking  versions
    engine
    problems
    solvers
    formats
    features
    metrics
    cluster
    persistence  progress  checkpoints
    estimators
    datasets  report
    cli
    __init__  __main__
"""
LEVEL = {part: level for level, line in enumerate(LAYERS.splitlines()) for part in line.split()}


class Arrow(NamedTuple):
    """An import, wherever in its module it stands; modules are paths of names in the package."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    place: str
    is_relative: bool


def arrows_of(path, root=PACKAGE):
    """Imports of a module's from its own package, also those in functions and for types only."""
    *folder, name = path.relative_to(root).with_suffix("").parts
    source = (*folder, name) if name != "__init__" or not folder else tuple(folder)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        place = f"{path.relative_to(root)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            names = [name[1:] for name in names if name[0] == root.name]
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            if node.level:
                base = [*folder[: len(folder) - node.level + 1], *parts]
            elif parts[0] == root.name:
                base = parts[1:]
            else:
                continue
            names = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for name in names:
            while name and not is_module(root.joinpath(*name)):
                name = name[:-1]  # a name in a module
            is_relative = isinstance(node, ast.ImportFrom) and node.level > 0
            yield Arrow(source, tuple(name) or ("__init__",), place, is_relative)


def is_module(path):
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


ARROWS = [arrow for path in sorted(PACKAGE.rglob("*.py")) for arrow in arrows_of(path)]


def test_arrows_are_found(tmp_path):
    """Every form of import counts."""
    package = tmp_path / "maxmargin"
    for path in ("low.py", "high/__init__.py", "high/part.py", "high/deep/__init__.py"):
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).touch()
    (package / "__init__.py").touch()
    module = package / "high" / "deep" / "module.py"
    module.write_text(
        "import os\nfrom typing import TYPE_CHECKING\nimport maxmargin.low\n"
        "from maxmargin.high import part, name\n"
        "if TYPE_CHECKING:\n    from ..part import Name\n"
        "def f():\n    from ... import low, __version__\n    from . import other\n"
    )
    found = [(".".join(arrow.target), arrow.is_relative) for arrow in arrows_of(module, package)]
    assert sorted(found) == [
        ("__init__", True),
        ("high", False),
        ("high.deep", True),
        ("high.part", False),
        ("high.part", True),
        ("low", False),
        ("low", True),
    ]


def test_every_module_has_a_layer():
    """A new module or folder is validation its place in the order."""
    found = {path.relative_to(PACKAGE).with_suffix("").parts[0] for path in PACKAGE.rglob("*.py")}
    assert found == set(LEVEL)


def test_no_arrow_points_up():
    wrong = [
        f"{arrow.place} imports {'.'.join(arrow.target)}"
        for arrow in ARROWS
        if LEVEL[arrow.target[0]] > LEVEL[arrow.source[0]]
    ]
    assert not wrong


def test_neighbours_of_a_layer_import_each_other_one_way():
    """Within a layer, too, parts do not go round in circles."""
    below = {part: set() for part in LEVEL}
    for arrow in ARROWS:
        source, target = arrow.source[0], arrow.target[0]
        if source != target and LEVEL[source] == LEVEL[target]:
            below[source].add(target)
    while leaves := {part for part, parts in below.items() if not parts}:
        below = {part: parts - leaves for part, parts in below.items() if part not in leaves}
    assert not below


def test_the_architecture_has_the_same_order():
    assert LAYERS in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_structures_do_not_import_each_other():
    """What two structures need lies below them, in the engine or in search."""
    wrong = [
        f"{arrow.place} imports {'.'.join(arrow.target)}"
        for arrow in ARROWS
        if arrow.source[0] == arrow.target[0] == "problems"
        and arrow.source[1:2] != arrow.target[1:2]
    ]
    assert not wrong


def estimator_modules():
    return sorted({arrow.source for arrow in ARROWS if arrow.source[0] == "estimators"})


@pytest.mark.parametrize("module", estimator_modules(), ids=".".join)
def test_an_estimator_knows_one_structure(module):
    """Through other files of its folder, too."""
    reached, new = set(), {module}
    while new:
        reached |= new
        new = {arrow.target for arrow in ARROWS if arrow.source in new} - reached
        new = {target for target in new if target[0] == "estimators"}
    structures = {
        arrow.target[1]
        for arrow in ARROWS
        if arrow.source in reached and arrow.target[0] == "problems"
    }
    assert len(structures) <= 1, structures


def test_imports_are_relative():
    """In one style throughout, which also lets the package be copied under another name."""
    assert not [arrow.place for arrow in ARROWS if not arrow.is_relative]


WRITING = {
    "formats/writing.py": "the one that does",
    "cli/console.py": "opens the null device",
    "engine/parallel/processes.py": "lends a problem to other processes, by a file that it removes",
}


def test_files_are_written_in_one_place():
    """Whole or not at all: nothing but formats/writing.py opens a file to write it."""
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).as_posix() in WRITING:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and may_write(node):
                wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node):.60}")
    assert not wrong


def may_write(call):
    """Whether a call opens a file in another mode than one for reading, or writes one by name."""
    name = ast.unparse(call.func)
    if name == "open" or name.endswith((".open", ".fdopen")):
        modes = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
        return any(
            not isinstance(mode, ast.Constant) or mode.value not in ("r", "rt", "rb")
            for mode in modes
        )
    return name.endswith((".write_text", ".write_bytes", ".tofile", "np.save", "np.savez"))


def private_imports(path):
    """Names of other packages' inner parts that a module imports, and where."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            own = name.split(".")[0] in ("__future__", PACKAGE.name)
            inner = any(part.startswith("_") for part in name.split("."))
            if not own and (inner or name.startswith("numba.core")):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno} {name}"


def test_inner_parts_of_other_packages_are_used_in_two_places():
    """Numba's, where each has something that takes its place; those of no other package."""
    found = [place for path in PACKAGE.rglob("*.py") for place in private_imports(path)]
    places = "jit/numba_patches.py:", "jit/lean_lowering.py:"
    assert all(place.startswith(places) for place in found), found
    assert found  # the test sees them
