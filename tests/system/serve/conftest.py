"""A page in a real browser."""

import shutil
from collections.abc import Iterator
from typing import Protocol

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
PAGE_TIMEOUT = 15_000  # milliseconds. The page follows within a second, on a busy machine within several.

expect.set_options(timeout=PAGE_TIMEOUT)


class Server(Protocol):
    """A server that was started for the test."""

    @property
    def url(self) -> str: ...


@pytest.fixture(scope="module")  # Playwright holds an event loop, which other files may need
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def unchecked_page(browser: Browser) -> Iterator[Page]:
    """A page for tests in which a request must fail. The browser logs such a failure to its console."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def page(unchecked_page: Page, server: Server) -> Iterator[Page]:
    """A page that must log no error or warning, and send requests only to its server."""
    complaints: list[str] = []
    addresses: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(message.text)

    unchecked_page.on("console", listen)
    unchecked_page.on("pageerror", lambda error: complaints.append(str(error)))
    unchecked_page.on("request", lambda request: addresses.append(request.url))
    yield unchecked_page
    assert complaints == []
    assert addresses, "the test opened no page"
    assert [address for address in addresses if not address.startswith((f"{server.url}/", "data:", "blob:"))] == []
