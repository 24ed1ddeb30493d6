"""Put built documentation into the folder of its version, and list all versions for the switcher.

    python tools/publish_docs.py build/docs site 0.1 --url https://example.org/maxmargin

The site then has a folder for each version (`dev` for the main branch), `switcher.json`, which the
theme reads, and a first page that leads to the newest release, or to `dev` before there is one.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path

DEVELOPMENT = "dev"


def publish(built: Path, site: Path, version: str, url: str) -> None:
    """Replace the pages of one version; those of all others stay."""
    if version != DEVELOPMENT and not re.fullmatch(r"\d+(\.\d+)+", version):
        raise ValueError(f"version must be {DEVELOPMENT!r} or numbers and dots, got {version!r}")
    if not (built / "index.html").exists():
        raise ValueError(f"{built}: has no index.html, build the documentation first")
    folder = site / version
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(built, folder)
    newest, *_ = found = versions_of(site)
    entries = [
        {"name": name, "version": name, "url": f"{url.rstrip('/')}/{name}/"}
        | ({"preferred": True, "name": f"{name} (stable)"} if name == newest != DEVELOPMENT else {})
        for name in found
    ]
    (site / "switcher.json").write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    (site / "index.html").write_text(
        f'<!doctype html>\n<meta http-equiv="refresh" content="0; url={newest}/">\n'
        f'<a href="{newest}/">maxmargin {newest}</a>\n',
        encoding="utf-8",
    )
    (site / ".nojekyll").touch()  # folders that begin with an underscore are served, too


def versions_of(site: Path) -> list[str]:
    """Folders with a version's name: releases from the newest on, then `dev`."""
    names = [path.parent.name for path in site.glob("*/index.html")]
    releases = [name for name in names if re.fullmatch(r"\d+(\.\d+)+", name)]
    releases.sort(key=lambda name: [int(number) for number in name.split(".")], reverse=True)
    return [*releases, *(name for name in names if name == DEVELOPMENT)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("built", type=Path, help="folder that Sphinx wrote the pages to")
    parser.add_argument("site", type=Path, help="folder of the site with all versions")
    parser.add_argument("version", help="version of the pages, such as 0.1, or dev")
    parser.add_argument("--url", required=True, help="address that the site is served from")
    publish(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
