"""What dashboard tests share."""

import json
import re
from typing import Any

from playwright.sync_api import Page


def pretend(page: Page, name: str, document: dict[str, Any]) -> None:
    """Let the page of this experiment see this document. It may change until the page is loaded."""

    def body() -> str:
        return f"event: document\ndata: {json.dumps(document)}\n\n"

    live = re.compile(rf"/v1/experiments/{name}/live")
    page.route(live, lambda route: route.fulfill(content_type="text/event-stream", body=body()))
