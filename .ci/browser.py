"""Load every page of the built site in headless Chromium: `python .ci/browser.py FOLDER`.

Fails on console errors, requests that fail, formulas that are not typeset, links that lead nowhere inside the
site, and pictures without alternative text.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WRONG = re.compile(r"CONSOLE.*(Uncaught|Failed to load|ERR_|[Ee]rror)")
BEFORE_STOP = 60  # seconds


class Page(HTMLParser):
    """Links, pictures without text, and names that can be linked to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.silent: list[str] = []
        self.names: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Take note of one element."""
        found = dict(attributes)
        self.names |= {value for key in ("id", "name") if (value := found.get(key))}
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        if tag == "img" and not found.get("alt"):
            self.silent.append(str(found.get("src")))


def broken(file: Path, pages: dict[Path, Page]) -> list[str]:
    """Links of a page to files or places that do not exist."""
    wrong = []
    for link in pages[file].links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, place = unquote(link).partition("#")
        target = (file.parent / path).resolve() if path else file
        known = pages.get(target)
        if not target.exists() or (place and known is not None and place not in known.names):
            wrong.append(f"link to {link}")
    return wrong


def loaded(file: Path) -> list[str]:
    """What Chromium complains about while it shows a page."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [
                *(str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"),
                *("--enable-logging=stderr", "--virtual-time-budget=4000", f"--user-data-dir={profile}"),
                *("--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND", file.as_uri()),
            ],
            capture_output=True,
            text=True,
            timeout=BEFORE_STOP,
            check=False,
        )
    wrong = [line.strip() for line in done.stderr.splitlines() if WRONG.search(line)]
    if "<body" not in done.stdout:
        wrong.append(f"no page, exit code {done.returncode}")
    if 'class="math' in done.stdout and "<mjx-container" not in done.stdout:
        wrong.append("formulas are not typeset")
    return wrong


def main(folder: Path) -> int:
    """Check the pages of a site; 1 if something is wrong."""
    if CHROMIUM is None:
        print("no Chromium found")
        return 1
    files = sorted(file.resolve() for file in folder.rglob("*.html") if "_static" not in file.parts)
    pages = {file: Page(file.read_text("utf-8")) for file in files}
    with ThreadPoolExecutor(2) as pool:
        complaints = dict(zip(files, pool.map(loaded, files), strict=True))
    count = 0
    for file in files:
        wrong = [*complaints[file], *broken(file, pages), *(f"no alt text: {s}" for s in pages[file].silent)]
        count += len(wrong)
        for line in wrong:
            print(f"{file.relative_to(folder.resolve())}: {line}")
    print(f"{len(files)} pages loaded, {count} complaints")
    return bool(count)


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
