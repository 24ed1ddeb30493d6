"""The pages of docs/ are complete: Sphinx, which would say so too, takes minutes."""

from __future__ import annotations

import ast
import importlib
import os.path
import re
import shlex
from pathlib import Path

import pytest

from maxmargin.cli import make_parser
from maxmargin.cli.tasks import TASKS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PUBLIC = "solvers core.result features formats metrics datasets report core.formulation".split()


def pages() -> list[str]:
    """Names of all pages but the first, as a toctree writes them."""
    found = (path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md"))
    return sorted(path.as_posix() for path in found if path.as_posix() != "index")


def linked_pages() -> set[str]:
    """Pages that some toctree names."""
    linked: set[str] = set()
    for path in DOCS.rglob("*.md"):
        folder = path.parent.relative_to(DOCS)
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", path.read_text("utf-8"), re.M | re.S):
            entries = [line for line in tree.split("\n") if line and not line.startswith(":")]
            names = [re.sub(r".* <(.*)>", r"\1", entry) for entry in entries]
            linked |= {os.path.normpath(folder / name) for name in names}
    return linked


def test_every_page_is_in_a_table_of_contents():
    assert set(pages()) - linked_pages() == set()
    # Examples are pages that Sphinx makes; all others are there.
    assert linked_pages() - set(pages()) == {"gallery/index"}


@pytest.mark.parametrize("module", ["", *(f".{name}" for name in PUBLIC)])
def test_every_public_name_is_on_the_api_page(module: str):
    listed = set(re.findall(r"\w+", (DOCS / "api/index.md").read_text("utf-8")))
    names = set(importlib.import_module(f"maxmargin{module}").__all__) - {"__version__"}
    assert names - listed == set()


def test_the_api_page_lists_nothing_else():
    text = (DOCS / "api/index.md").read_text("utf-8")
    module = None
    for line in text.splitlines():
        if match := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = importlib.import_module(match[1])
        elif match := re.fullmatch(r" {3}(\w+)", line):
            assert hasattr(module, match[1]), match[1]


def test_links_between_pages_lead_somewhere():
    for path in [*DOCS.rglob("*.md"), ROOT / "README.md"]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
            if "gallery/index" not in target:  # made by Sphinx
                assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_links_to_examples_lead_somewhere():
    targets = set()
    for path in DOCS.rglob("*.md"):
        targets |= set(re.findall(r"\bgallery/(\w+/\w+|\w+)(?=[`>])", path.read_text("utf-8")))
    assert len(targets) > 10
    assert [name for name in targets if not (ROOT / f"examples/{name}.py").exists()] == ["index"]


def anchors(path: Path) -> set[str]:
    """Anchors of a page's headings, as MyST and GitHub make them, of levels that conf.py names."""
    text = re.sub(r"^( *)(```+).*?^ *\2", "", path.read_text("utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#{1,3} +(.+?) *$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_to_headings_lead_somewhere():
    """Sphinx is silent about them: myst.xref_missing is suppressed."""
    n_links = 0
    for path in [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), ROOT / "benchmarks/README.md"]:
        links = re.findall(r"\]\(([^)#]*)#([^)]+)\)", path.read_text("utf-8"))
        for target, anchor in links:
            local = re.sub(r"^https://\S+/maxmargin/maxmargin/blob/main/", f"{ROOT}/", target)
            if not local.startswith("http"):
                page = path.parent / local if target else path
                assert anchor in anchors(page), f"{path.name}: {target}#{anchor}"
                n_links += 1
    assert n_links >= 3


GUIDE = ["Data", "Features", "Loss", "Choosing C", "Evaluation", "What the model learned"]
GUIDE += ["Common mistakes", "Reference"]


@pytest.mark.parametrize(
    "name", sorted({path.stem for path in (DOCS / "tasks").glob("*.md")} - {"index"})
)
def test_the_page_of_a_task_is_a_guide(name: str):
    text = (DOCS / f"tasks/{name}.md").read_text("utf-8")
    assert re.findall(r"^## (.*)$", text, re.M) == GUIDE
    before_data = text.partition("<!-- data:")[0]
    assert "```python\n" in before_data  # CI has no data
    assert re.search(r"```output\n[^`]", before_data)
    pictures = re.findall(r"!\[(.*)\]\((.*)\)", text)
    assert pictures
    for description, picture in pictures:
        assert len(description) > 20
        assert (DOCS / "tasks" / picture).stat().st_size < 60_000


def test_links_of_the_readme_lead_to_files_of_the_repository():
    """They are absolute, for package indexes show the README, too."""
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text("utf-8"))
    assert len(targets) > 20
    for target in targets:
        match = re.fullmatch(
            r"https://\S+/maxmargin/maxmargin/(?:(?:blob|tree)/)?main/(\S+)", target
        )
        assert match and (ROOT / match[1]).exists(), target


def test_the_readme_is_short():
    text = re.sub(
        r"```.*?```|\(https?://[^)]*\)", "", (ROOT / "README.md").read_text("utf-8"), flags=re.S
    )
    assert len(re.findall(r"[A-Za-z0-9][\w.%-]*", text)) <= 700


EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_every_example_is_a_short_page(example: Path):
    text = example.read_text("utf-8")
    title, line = (ast.get_docstring(ast.parse(text)) or "").split("\n")[:2]
    assert set(line) == {"="} and len(line) >= len(title)
    assert text.count("\n# %%\n") >= 1 and len(text.splitlines()) <= 120
    assert "plt.show()\n" in text


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_examples_on_external_data_show_recorded_outputs(example: Path):
    """Sphinx does not run them: what they print and draw is in the example and in docs/images."""
    text = example.read_text("utf-8")
    picture = f"images/gallery/{example.stem}.png"
    if "\n.. data: " in text:
        outputs = re.findall(r"^# \.\. code-block:: output\n#\n(.*)", text, re.M)
        assert outputs and all(line.startswith("#     ") for line in outputs)
        assert f"# sphinx_gallery_thumbnail_path = '{picture}'\n" in text
        assert f"# .. image:: /{picture}\n#    :alt: " in text
        assert (DOCS / picture).stat().st_size < 150_000
    else:
        assert "code-block:: output" not in text and not (DOCS / picture).exists()
        assert not re.search(r"\bfetch_|MAXMARGIN_DATA", text)


def test_at_least_ten_examples_are_on_real_data():
    real = r"\n\.\. data: |import (load_|make_digit_words)|, make_digit_words"
    assert len([path for path in EXAMPLES if re.search(real, path.read_text("utf-8"))]) >= 10


def test_the_page_of_the_command_line_has_all_commands():
    text = (DOCS / "command_line.md").read_text("utf-8")
    (commands,) = (a.choices for a in make_parser()._actions if isinstance(a.choices, dict))
    names = [parser.prog.split()[-1] for parser in commands.values()]  # aliases are not listed
    assert [name for name in names if f"maxmargin {name}" not in text] == []
    assert [name for name in TASKS if f"`{name}`" not in text] == []


def command_lines() -> list[tuple[str, str]]:
    """Page and command of all that pages show with arguments, in blocks and in text."""
    found = []
    for path in [*DOCS.rglob("*.md"), ROOT / "README.md"]:
        text = path.read_text("utf-8")
        blocks = re.findall(r"(?:^|[|&] )\s*(maxmargin .*?)(?= [#|&>]|$)", text, re.M)
        spans = re.findall(r"`(maxmargin [^`]* -[^`]*)`", text)
        lines = {" ".join(line.split()) for line in [*blocks, *spans] if "`" not in line}
        found += [(path.name, line) for line in sorted(lines) if not line.endswith("--help")]
    return found


@pytest.mark.parametrize(("page", "line"), command_lines())
def test_options_that_pages_show_are_there(page: str, line: str):
    make_parser().parse_args(shlex.split(line)[1:])


def test_command_lines_are_found():
    assert ("tagging.md", "maxmargin predict model.mm new.txt --confidence") in command_lines()
    assert len(command_lines()) > 30
