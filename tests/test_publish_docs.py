"""Documentation of several versions side by side."""

import json
from pathlib import Path

import pytest

URL = "https://example.org/maxmargin/"


@pytest.fixture
def publish(monkeypatch):
    """The tool, which is not installed."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "tools"))
    import publish_docs

    return publish_docs.publish


@pytest.fixture
def built(tmp_path):
    folder = tmp_path / "built"
    (folder / "_static").mkdir(parents=True)
    (folder / "_static/site.css").write_text("")
    (folder / "index.html").write_text("new")
    return folder


def test_before_the_first_release_the_site_leads_to_dev(publish, built, tmp_path):
    publish(built, tmp_path / "site", "dev", URL)
    assert 'url=dev/"' in (tmp_path / "site/index.html").read_text()
    assert (tmp_path / "site/dev/_static/site.css").exists()
    (entry,) = json.loads((tmp_path / "site/switcher.json").read_text())
    assert entry == {"name": "dev", "version": "dev", "url": f"{URL}dev/"}


def test_versions_are_listed_by_number_and_the_newest_is_preferred(publish, built, tmp_path):
    site = tmp_path / "site"
    for version in ("0.9", "dev", "0.10", "0.2"):
        publish(built, site, version, URL)
    entries = json.loads((site / "switcher.json").read_text())
    assert [entry["version"] for entry in entries] == ["0.10", "0.9", "0.2", "dev"]
    assert [entry["version"] for entry in entries if entry.get("preferred")] == ["0.10"]
    assert 'url=0.10/"' in (site / "index.html").read_text()


def test_pages_of_the_same_version_are_replaced_and_others_stay(publish, built, tmp_path):
    site = tmp_path / "site"
    publish(built, site, "0.1", URL)
    (built / "index.html").write_text("newer")
    (built / "_static/site.css").unlink()
    publish(built, site, "dev", URL)
    assert (site / "0.1/index.html").read_text() == "new"
    publish(built, site, "0.1", URL)
    assert (site / "0.1/index.html").read_text() == "newer"
    assert not (site / "0.1/_static/site.css").exists()


def test_a_wrong_version_or_an_empty_build_changes_nothing(publish, built, tmp_path):
    with pytest.raises(ValueError, match=r"version must be 'dev' or numbers and dots, got '\.\.'"):
        publish(built, tmp_path / "site", "..", URL)
    with pytest.raises(ValueError, match=r"has no index\.html, build the documentation first"):
        publish(tmp_path / "nothing", tmp_path / "site", "dev", URL)
    assert not (tmp_path / "site").exists()
