"""A report in a real browser: no errors, and the controls do what they say."""

import json
import shutil
import subprocess

import numpy as np
import pytest

import maxmargin as mm

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

# Uses the page as a reader would, and leaves what came of it in the document.
USE = """
<script>
const seen = {};
const column = (table, k) => Array.from(table.tBodies[0].rows, (row) => row.cells[k].textContent);
const labels = document.querySelector("#labels table");
const header = labels.tHead.rows[0].cells[4];
header.click();
seen.falling = column(labels, 4);
header.click();
seen.rising = column(labels, 4);
const before = document.querySelectorAll("article:not([hidden])").length;
document.querySelector("button.more").click();
seen.articles = [before, document.querySelectorAll("article:not([hidden])").length];
document.getElementById("theme").click();
const first = document.documentElement.dataset.theme;
const paper = getComputedStyle(document.body).backgroundColor;
document.getElementById("theme").click();
seen.themes = [first, document.documentElement.dataset.theme];
seen.papers = [paper, getComputedStyle(document.body).backgroundColor];
seen.width = [document.documentElement.scrollWidth, window.innerWidth];
document.title = JSON.stringify(seen);
</script>
</body>"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium found")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.digitize(X @ [1.0, 2.0, 0.0, -1.0] + 2.0 * rng.normal(size=200), [-1.0, 1.0])
    folder = tmp_path_factory.mktemp("page")
    report = mm.MulticlassSVM(random_state=0).fit(X, y).report(X, y)
    page = folder / "report.html"
    page.write_text(report.html.replace("</body>", USE), encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += [f"--user-data-dir={folder / 'profile'}", "--window-size=500,900", "--dump-dom"]
    ran = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120)
    title = ran.stdout.partition("<title>")[2].partition("</title>")[0]
    assert title.startswith("{"), ran.stderr[-2000:]
    errors = [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
    return {**json.loads(title), "errors": errors}


def test_no_errors_on_the_console(seen):
    assert seen["errors"] == []


def test_tables_sort_both_ways(seen):
    numbers = [float(text) for text in seen["falling"]]
    assert numbers == sorted(numbers, reverse=True)
    assert seen["rising"] == seen["falling"][::-1]


def test_more_examples_unfold(seen):
    before, after = seen["articles"]
    assert before == 10 < after


def test_light_and_dark(seen):
    assert sorted(seen["themes"]) == ["dark", "light"]
    assert len(set(seen["papers"])) == 2


def test_nothing_is_wider_than_a_phone(seen):
    content, window = seen["width"]
    assert content <= window
