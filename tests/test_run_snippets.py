"""Pages are run, and what they show as output is what their blocks print."""

from __future__ import annotations

import os

import pytest

from conftest import REPOSITORY

PAGE = """\
# Title

```python
x = 3
print(f"x = {x}, in 0.1 s")
```

```output
```

- in a list:

  ```python
  print(x * 7, "is about", 0.3333)
  ```
  ```output
  old
  ```

```shell
echo on both streams >&2
```

Words between a block and an output keep them apart.

```output
as it was
```
"""


@pytest.fixture
def tool(monkeypatch):
    """The tool, which is not installed."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    import run_snippets

    return run_snippets


@pytest.fixture
def run(tool, tmp_path):
    """Run a page with this text; its text afterwards."""

    def run_text(text, *options):
        page = tmp_path / "page.md"
        page.write_text(text)
        tool.main([str(page), "--images", str(tmp_path), *options])
        return page.read_text()

    return run_text


def test_outputs_are_recorded_and_then_current(run):
    recorded = run(PAGE, "--record")
    assert "\n```output\nx = 3, in 0.1 s\n```\n" in recorded
    assert "\n  ```output\n  21 is about 0.3333\n  ```\n" in recorded
    assert "\n```output\nas it was\n```\n" in recorded
    assert run(recorded) == recorded
    assert run(recorded, "--record") == recorded


def test_an_output_that_is_not_current_is_a_failure(run, capsys):
    recorded = run(PAGE, "--record")
    with pytest.raises(SystemExit, match="1 not as recorded"):
        run(recorded.replace("21 is", "23 is"))
    assert "page.md:18: printed instead:\n21 is about 0.3333" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2 not as recorded"):
        run(PAGE)


def test_both_streams_of_shell_blocks_are_recorded(run):
    page = "```shell\necho answer; echo warning >&2\n```\n```output\n```\n"
    assert "```output\nanswer\nwarning\n```" in run(page, "--record")


@pytest.mark.parametrize(
    ("recorded", "printed", "same"),
    [
        ("F1 0.800 of 100", "F1 0.830  of\n103", True),
        ("F1 0.800", "F1 0.850", False),
        ("F1 0.02", "F1 0.03", True),  # a unit of the last place
        ("7 errors", "8 errors", False),
        ("-0.5", "0.5", False),
        ("1e-05", "1.03e-05", True),
        ("1e-05", "1e-04", False),
        ("B-PER", "B-LOC", False),
        ("fit in 1.2 s, 300 MB", "fit in 7 s, 100.5 MB", True),
        ("3 sentences", "9 sentences", False),
        ("conll2000", "conll2002", False),
        ("one", "one two", False),
        ("1", "1 2", False),
        ("", "", True),
    ],
)
def test_what_counts_as_the_same_output(tool, recorded, printed, same):
    assert tool.same_output(recorded, printed) is same
    assert tool.same_output(printed, recorded) is same


def test_a_failure_has_the_line_of_the_page(run):
    with pytest.raises(SystemExit, match=r"page\.md:4: failed"):
        run("Text.\n```python\n1 + 1\n1 / 0\n```\n")
    with pytest.raises(SystemExit, match=r"page\.md:2: failed"):
        run("```shell\nfalse\ntrue\n```\n")


def test_a_page_without_blocks_is_a_mistake(run):
    with pytest.raises(SystemExit, match="no python or shell block"):
        run("```text\nnothing\n```\n")
    with pytest.raises(ValueError, match="line 2: fenced block is not closed"):
        run("Text.\n```python\n1\n")


def test_pages_with_data_run_where_the_data_are(run, tmp_path, monkeypatch, capsys):
    page = "<!-- data: names -->\n```python\nimport os\n"
    page += "print(os.listdir(os.environ['MAXMARGIN_DATA']))\n```\n```output\n```\n"
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path / "data"))
    assert run(page, "--record") == page
    assert "skipped, its data are not there: names" in capsys.readouterr().out
    (tmp_path / "data/names").mkdir(parents=True)
    assert "['names']" in run(page, "--record")


def test_blocks_before_the_data_run_without_them(run, tmp_path, monkeypatch, capsys):
    block = "```python\nimport os\nprint('MAXMARGIN_DATA' in os.environ)\n```\n```output\n```\n"
    page = f"{block}<!-- data: names -->\n{block}"
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path / "data"))
    recorded = run(page, "--record")
    assert recorded == page.replace("```output\n", "```output\nFalse\n", 1)
    assert "page.md:9: skipped, its data are not there: names" in capsys.readouterr().out
    run(recorded)
    with pytest.raises(SystemExit, match="1 not as recorded"):
        run(page)
    (tmp_path / "data/names").mkdir(parents=True)
    assert "```output\nTrue\n```" in run(recorded, "--record")


def test_pages_without_data_do_not_see_them(run, monkeypatch):
    monkeypatch.setenv("MAXMARGIN_DATA", "anywhere")
    run("```python\nimport os\nassert 'MAXMARGIN_DATA' not in os.environ\n```\n")
    assert os.environ["MAXMARGIN_DATA"] == "anywhere"


def test_figures_are_copied(run, tmp_path):
    page = "```python\nopen('curve.png', 'w').write('pixels')\n```\n"
    with pytest.raises(SystemExit):
        run(page)
    run(page, "--record")
    assert (tmp_path / "curve.png").read_text() == "pixels"
    run(page)


def test_classes_of_a_page_can_be_pickled(run):
    first = "```python\nimport pickle\nclass Pair: pass\n```\n"
    run(first + "```python\nassert type(pickle.loads(pickle.dumps(Pair()))) is Pair\n```\n")


EXAMPLE = '''\
"""
Title
=====

.. data: letters
"""

x = 3
print(x)

# %%
# .. code-block:: output
#
#     old
#
# Words.

print("a line\\n\\nanother")

# %%
# .. code-block:: output
#
#
# More words.

print("not shown")
'''


def test_outputs_of_examples_are_recorded(tool, tmp_path, monkeypatch, capsys):
    example = tmp_path / "example.py"
    example.write_text(EXAMPLE)
    (tmp_path / "data/letters").mkdir(parents=True)
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path / "data"))
    arguments = [str(example), "--images", str(tmp_path)]
    with pytest.raises(SystemExit, match="2 not as recorded"):
        tool.main(arguments)
    tool.main([*arguments, "--record"])
    recorded = example.read_text()
    assert recorded == EXAMPLE.replace("#     old\n", "#     3\n").replace(
        "#\n#\n# More", "#\n#     a line\n#\n#     another\n#\n# More"
    )
    tool.main([*arguments, "--record"])
    assert example.read_text() == recorded
    tool.main(arguments)
    assert "example.py:28: ok" in capsys.readouterr().out


def test_the_figure_of_an_example_is_recorded(tool, tmp_path):
    example = tmp_path / "example.py"
    example.write_text(
        '"""Title"""\n\nimport matplotlib.pyplot as plt\n\nplt.plot([1, 2])\nplt.show()\n'
    )
    arguments = [str(example), "--images", str(tmp_path)]
    with pytest.raises(SystemExit, match="1 not as recorded"):
        tool.main(arguments)
    tool.main([*arguments, "--record"])
    assert (tmp_path / "gallery/example.png").exists()
    tool.main(arguments)


def test_an_example_without_its_data_is_skipped(tool, tmp_path, monkeypatch, capsys):
    example = tmp_path / "example.py"
    example.write_text(EXAMPLE)
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    tool.main([str(example), "--images", str(tmp_path)])
    assert "skipped, its data are not there: letters" in capsys.readouterr().out
