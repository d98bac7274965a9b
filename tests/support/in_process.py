"""A service in this process, asked over HTTP without a socket."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, final

import httpx

from belated.serve.http import app
from belated.serve.service.service import Service


@final
class Caller:
    """Sends requests to a service, with a key if there is one."""

    def __init__(self, http: httpx.AsyncClient, key: str | None = None) -> None:
        self._http, self._headers = http, {} if key is None else {"Authorization": f"Bearer {key}"}

    def having(self, key: str | None) -> "Caller":
        """The same caller with another key."""
        return Caller(self._http, key)

    async def request(self, method: str, path: str) -> httpx.Response:
        """Send a request of any method."""
        return await self._http.request(method, path, headers=self._headers)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """Send a GET request."""
        return await self._http.get(path, headers={**self._headers, **headers})

    async def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """Send a POST request."""
        return await self._http.post(path, json=body, headers={**self._headers, **headers})


def visit(service: Service, visitor: Callable[[Caller], Awaitable[None]]) -> None:
    """Start the service, let a visitor call it, and stop it."""

    async def run() -> None:
        service.start(asyncio.get_running_loop())
        transport = httpx.ASGITransport(app.build(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=30) as http:
            await visitor(Caller(http))

    try:
        asyncio.run(run())
    finally:
        service.stop()
