"""What dashboard tests share."""

import json
import math
import re
from typing import Any

from playwright.sync_api import Page


def pretend(page: Page, name: str, document: dict[str, Any]) -> None:
    """Let the page of this experiment see this document. It may change until the page is loaded."""

    def body() -> str:
        return f"event: document\ndata: {json.dumps(document)}\n\n"

    live = re.compile(rf"/v1/experiments/{name}/live")
    page.route(live, lambda route: route.fulfill(content_type="text/event-stream", body=body()))


def percent(share: float) -> str:
    """Return a share of a tenth or more as the page says it. Only a certain one is 100%."""
    assert 0.0995 <= share <= 1
    if 0.995 < share < 1:
        return f"{min(99.9, 100 * share):.1f}%"
    return f"{math.floor(100 * share + 0.5)}%"
