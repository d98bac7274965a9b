"""`make figures` takes the README's screenshot of the dashboard, from `belated serve --demo` after 90 seconds."""

import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.support.service import Served

PICTURE = Path(__file__).parent.parent / "docs" / "figures" / "dashboard.png"
SECONDS = 90


def main() -> None:
    """Let the demonstration run, then look at it."""
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder), "--demo") as served:
        time.sleep(SECONDS)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1100, "height": 1080})
            page.goto(f"{served.url}/experiments/demo")
            page.get_by_test_id("proven").wait_for()
            page.wait_for_timeout(1000)  # bars move into place
            page.screenshot(path=PICTURE)
            browser.close()


if __name__ == "__main__":
    main()
