"""Makes the pictures of the documentation: ``python docs/screenshots.py``, with Chromium on the path."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.sync_api import Page, sync_playwright

DOCS: Final = Path(__file__).parent
DEMO: Final = DOCS.parent / "examples" / "memory_transfer" / "demo.py"
FLAGS: Final = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@contextmanager
def portal(home: Path) -> Iterator[str]:
    """The address of a portal on the memory of the example's two agents, in somebody's home."""
    environment = {**os.environ, "HOME": str(home), "MEMORIZZ_HOME": str(home / ".memorizz")}
    root = home / "demo"
    subprocess.run([sys.executable, str(DEMO), "--root", str(root)], env=environment, check=True, capture_output=True)
    (root / "source").rename(home / "harbor")
    command = [sys.executable, "-m", "memorizz", "ui", "--path", str(home / "harbor"), "--port", "0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            yield next(found[0] for line in server.stderr if (found := re.search(r"http://\S+", line)))
        finally:
            server.terminate()


def shoot(page: Page, name: str) -> None:
    """One picture of what the window shows."""
    page.screenshot(path=DOCS / "images" / f"portal-{name}.png")


def main() -> None:
    """Write every picture."""
    chromium = shutil.which("chromium")
    assert chromium is not None, "there is no Chromium on the path"
    with TemporaryDirectory() as directory, portal(Path(directory)) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 780}, color_scheme="light")
        page.goto(url)
        shoot(page, "home")
        page.goto(f"{url}/memory-transfer")
        page.get_by_label("Archive file").set_input_files(Path(directory) / "demo" / "harbor.memorizz.json")
        page.get_by_label("Record identities").select_option("new")
        page.get_by_role("button", name="Preview import").click()
        page.get_by_role("button", name="Download report").wait_for()
        page.set_viewport_size({"width": 1200, "height": 1080})
        page.evaluate("scrollTo(0, 0)")
        shoot(page, "import")
        page.set_viewport_size({"width": 1200, "height": 780})
        page.emulate_media(color_scheme="dark")
        page.goto(f"{url}/traces/memory-evolution?memory_type=knowledge_base")
        shoot(page, "evolution")
        browser.close()


if __name__ == "__main__":
    main()
