"""``predict --confidence`` and ``train --probability``."""

import pytest

import maxmargin as mm
from cli_corpus import refused, write_corpus
from maxmargin.cli import main
from maxmargin.cli.tasks import TASKS
from maxmargin.formats import read_columns


@pytest.mark.parametrize("options", [[], ["--probability"]])
def test_tags(tmp_path, capsys, options):
    data, model = write_corpus(tmp_path / "train.txt", 30), tmp_path / "model.mm"
    assert main(["train", "tag", str(data), "-o", str(model), "-q", *options]) == 0
    output = tmp_path / "out.txt"
    assert main(["predict", str(model), str(data), "--confidence", "-o", str(output)]) == 0
    found, tagger = read_columns(output), mm.load(model)
    assert len(found.columns) == 5 and hasattr(tagger, "calibration_") == bool(options)
    X = found.select([0, 1])
    tables = tagger.predict_proba(X) if options else tagger.predict_margins(X)
    wanted = [row.max() for table in tables for row in table]
    assert [float(value) for value in found.columns[4]] == pytest.approx(wanted, rel=1e-5)
    assert found.columns[3] == [label for labels in tagger.predict(X) for label in labels]


@pytest.mark.parametrize("options", [[], ["--probability"]])
def test_classes(tmp_path, capsys, options):
    lines = [f"{k % 3} 1:{k % 3} 2:{k % 2} 3:{k / 40}" for k in range(40)]
    data, model = tmp_path / "train.svm", tmp_path / "model.mm"
    data.write_text("\n".join(lines) + "\n")
    assert main(["train", "multiclass", str(data), "-o", str(model), "-q", *options]) == 0
    assert main(["predict", str(model), str(data), "--confidence"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 40 and {row[0] for row in rows} == {"0", "1", "2"}
    values = [float(row[1]) for row in rows]
    assert min(values) > 0.0 and (max(values) <= 1.0 if options else max(values) > 1.0)


def test_a_model_of_a_task_without_it(tmp_path, capsys, monkeypatch):
    data, model = write_corpus(tmp_path / "train.txt", 5), tmp_path / "model.mm"
    assert main(["train", "tag", str(data), "-o", str(model), "-q"]) == 0
    monkeypatch.setattr(TASKS["tag"], "answers", (), raising=False)
    refused(
        ["predict", str(model), str(data), "--confidence"],
        "--confidence is not available for models",
        capsys,
        2,
    )
