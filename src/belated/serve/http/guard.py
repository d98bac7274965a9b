"""The guard of a service without keys. It answers only programs of its own user on this machine.

A proxy on this machine would open the service to everybody who reaches the proxy. No rule about headers can tell all
proxies, because the caller behind the proxy writes most of the headers. So the guard also asks the system whose program
is at the other end. A proxy usually has its own user. What remains is a proxy of the same user or of root that speaks
HTTP/1.1 and adds no header. It looks like any other program.
"""

from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from belated.serve.domain.refusals import Refusal
from belated.serve.http.addresses import is_loopback
from belated.serve.http.calls import Call

FIX: Final = "Create a key with `belated keys create`."
OWN: Final = "is_own_program"  # in the state of a request: a function that says whose program the caller is
FORWARDING: Final = (
    b"forwarded", b"via", b"x-forwarded", b"x-real-", b"x-client-", b"x-cluster-client-ip", b"x-original-",
    b"x-remote-", b"x-envoy-", b"x-proxy", b"proxy-", b"client-ip", b"true-client-ip", b"wl-proxy", b"fastly-",
    b"cf-", b"cdn-", b"fly-", b"ngrok-", b"tailscale-", b"x-amz", b"x-azure-", b"x-arr-", b"x-appengine-",
    b"x-cloud-trace", b"x-akamai", b"akamai-", b"x-haproxy", b"x-varnish", b"x-traefik", b"x-nginx", b"x-nf-",
    b"x-vercel-", b"x-scheme", b"x-host", b"x-ssl-", b"front-end-https", b"max-forwards", b"surrogate-",
)  # headers that only proxies add, or how their names begin  # fmt: skip


@lru_cache(256)
def is_this_machine(host: str) -> bool:
    """Whether the Host header names loopback."""
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


@lru_cache(1024)
def is_forwarding(name: bytes) -> bool:
    """Whether only proxies add a header of this name."""
    return name.startswith(FORWARDING)


def guard(call: Call) -> None:
    """Refuse callers that are not on this machine or not of this user, and pages of other sites in a browser."""
    check_directness(call)
    host, origin = call.header(b"host") or "", call.header(b"origin")
    if not is_this_machine(host):
        raise Refusal("forbidden", f"a service without keys answers only this machine, not {host!r:.80}. {FIX}")
    if origin is not None and origin.partition("://")[2] != host:  # compared as text, because it may be nonsense
        raise Refusal("forbidden", f"a service without keys does not answer pages of {origin!r:.80}. {FIX}")
    if call.header(b"sec-fetch-site") in ("cross-site", "same-site"):  # sent by browsers where Origin is not
        raise Refusal("forbidden", f"a service without keys does not answer pages of other sites. {FIX}")


def check_directness(call: Call) -> None:
    """Refuse a request that came through a proxy."""
    only = "a service without keys answers only programs that call it directly"
    for name, _ in call.scope["headers"]:
        if is_forwarding(name):
            raise Refusal("forbidden", f"{only}, not through a proxy (header {name.decode('latin-1')!r:.80}). {FIX}")
    if call.scope.get("http_version") == "1.0":
        raise Refusal("forbidden", f"{only}, not through a proxy (HTTP/1.0). {FIX}")
    is_own = call.scope.get("state", {}).get(OWN)
    if is_own is not None and is_own() is False:
        raise Refusal("forbidden", f"{only} as its own user, not through a proxy or as another user. {FIX}")
