"""Unmodified OpenFeature providers take part. The guides of docs/openfeature.md run as they stand."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.machine import Nginx
from tests.support.ports import free_port
from tests.support.service import NO_TLS, Served

DOCUMENT = (Path(__file__).parents[3] / "docs" / "openfeature.md").read_text()
MODULES = Path(sys.prefix) / "openfeature"  # as the Makefile installs them
OBJECT, FALLBACK = {"height": 80}, {"height": -1}
KINDS: dict[str, tuple[list[Any], Any, str]] = {
    "text": (["x", "y"], "none", "String"),
    "flag": ([True, False], None, "Boolean"),
    "number": ([1.5, 2], -1.5, "Number"),
    "object": ([OBJECT, {"height": 200}], FALLBACK, "Object"),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("service")) as server:
        for command in blocks("sh"):
            said = run(["/bin/sh", "-euc", at(server, command)])
            assert '"created_at"' in said, said
        for name, ((one, other), _, _) in KINDS.items():
            settings = {"name": name, "arms": ["a", "b"], "values": {"a": one, "b": other}}
            assert server.post("/v1/experiments", settings).status_code == 201
        server.post("/v1/experiments", {"name": "over", "arms": ["a", "b"]})
        server.post("/v1/experiments/over/close")
        yield server


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


def at(served: Served, block: str) -> str:
    """A block with the address of the test's service."""
    return block.replace("http://127.0.0.1:8321", served.url).replace("location.origin", f'"{served.url}"')


def run(command: list[str], folder: Path | None = None) -> str:
    """What a command prints."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, timeout=30)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


def node(code: str) -> str:
    """What a program prints that uses the providers."""
    assert (MODULES / "node_modules").is_dir(), f"run `make {MODULES.parent.name}/openfeature.stamp`"
    return run([shutil.which("node") or "node", "--input-type=module", "--eval", code], MODULES)


def reported(served: Served, name: str) -> int:
    return int(served.get(f"/v1/experiments/{name}").json()["reported"])


def test_the_guide_for_python_runs(served: Served) -> None:
    [code], before = blocks("python"), reported(served, "checkout")
    assert re.fullmatch(r"show (short|long) form\napplied\n", run([sys.executable, "-c", at(served, code)]))
    assert reported(served, "checkout") == before + 1


@pytest.mark.parametrize("number", [0, 1], ids=["server", "page"])
def test_the_guides_for_javascript_run(served: Served, number: int) -> None:
    code, before = blocks("js")[number], reported(served, "checkout")
    assert re.fullmatch(r"show (short|long) form\napplied\n", node(at(served, code)))
    assert reported(served, "checkout") == before + 1


def test_a_page_takes_part_through_nginx_which_has_the_keys(tmp_path: Path) -> None:
    def key(scope: str) -> str:
        said = run([sys.executable, "-m", "belated", "keys", "create", "--scope", scope], tmp_path)
        return next(word for word in said.split() if word.startswith("blt_"))

    admin = {"Authorization": f"Bearer {key('admin')}"}
    [words] = blocks("nginx")
    for scope in ("decide", "report"):
        words = words.replace("blt_...", key(scope), 1)
    with Served(tmp_path) as served:
        made = served.post("/v1/experiments", {"name": "checkout", "arms": ["short form", "long form"]}, **admin)
        assert made.status_code == 201
        nginx, port = Nginx(tmp_path), free_port()
        (tmp_path / "conf.d" / "default.conf").write_text(f"server {{ listen {port}; {at(served, words)} }}")
        nginx.run()
        try:
            code = blocks("js")[1].replace("location.origin", f'"http://127.0.0.1:{port}"')
            assert re.fullmatch(r"show (short|long) form\napplied\n", node(code))
            for path in ("/v1/experiments/checkout", "/v1/store", "/ofrep/v1/evaluate/flags/checkout"):
                assert httpx.get(f"http://127.0.0.1:{port}{path}", verify=NO_TLS, trust_env=False).status_code == 404
        finally:
            nginx.stop()
        assert served.get("/v1/experiments/checkout", **admin).json()["reported"] == 1


def test_python_gets_every_kind_of_value(served: Served) -> None:
    from openfeature import api  # noqa: PLC0415
    from openfeature.contrib.provider.ofrep import OFREPProvider  # noqa: PLC0415
    from openfeature.evaluation_context import EvaluationContext  # noqa: PLC0415
    from openfeature.exception import ErrorCode  # noqa: PLC0415

    provider = OFREPProvider(served.url)
    api.set_provider(provider)
    flags, context = api.get_client(), EvaluationContext(targeting_key="snake", attributes={"plan": "free"})
    found: list[Any] = [
        flags.get_string_details("text", "none", context),
        flags.get_boolean_details("flag", False, context),  # noqa: FBT003
        flags.get_float_details("number", -1.5, context),
        flags.get_object_details("object", FALLBACK, context),
    ]
    for name, one in zip(KINDS, found, strict=True):
        assert one.error_code is None, one
        assert one.value == KINDS[name][0]["ab".index(one.variant)]
        assert (one.reason, one.flag_metadata["probability"]) == ("SPLIT", 0.5)
    assert flags.get_string_details("text", "none", context).flag_metadata == found[0].flag_metadata
    assert flags.get_string_details("text", "none").error_code is ErrorCode.TARGETING_KEY_MISSING
    assert flags.get_string_details("nowhere", "none", context).error_code is ErrorCode.FLAG_NOT_FOUND
    mistaken = flags.get_string_details("flag", "none", context)
    assert (mistaken.value, mistaken.error_code) == ("none", ErrorCode.TYPE_MISMATCH)
    over = flags.get_string_details("over", "none", context)
    assert (over.value, over.reason, over.error_code) == ("none", "DISABLED", None)
    api.clear_providers()
    provider.session.close()


EVERY_KIND = """
const found = {};
for (const [name, [fallback, kind]] of Object.entries(KINDS))
  found[name] = await flags[`get${kind}Details`](name, fallback, ...CONTEXT);
found.again = await flags.getStringDetails("text", "none", ...CONTEXT);
found.nowhere = await flags.getStringDetails("nowhere", "none", ...CONTEXT);
found.mistaken = await flags.getStringDetails("flag", "none", ...CONTEXT);
found.over = await flags.getStringDetails("over", "none", ...CONTEXT);
console.log(JSON.stringify(found));
"""
SERVER = """
import { OpenFeature } from "@openfeature/server-sdk";
import { OFREPProvider } from "@openfeature/ofrep-provider";
await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: "http://127.0.0.1:8321" }));
const flags = OpenFeature.getClient();
const CONTEXT = [{ targetingKey: "kraken" }];
"""
PAGE = """
import { OpenFeature } from "@openfeature/web-sdk";
import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";
const statuses = [];
const counted = async (request) => {
  const answer = await fetch(request);
  statuses.push(answer.status);
  return answer;
};
await OpenFeature.setContext({ targetingKey: "spider", flags: [...Object.keys(KINDS), "over", "nowhere"] });
const provider = new OFREPWebProvider({
  baseUrl: "http://127.0.0.1:8321", pollInterval: 50, cacheMode: "disabled", fetchImplementation: counted,
});
await OpenFeature.setProviderAndWait(provider);
while (statuses.length < 3) await new Promise((done) => setTimeout(done, 20));
const flags = OpenFeature.getClient();
const CONTEXT = [];
"""


@pytest.mark.parametrize("kind", ["server", "page"])
def test_javascript_gets_every_kind_of_value(served: Served, kind: str) -> None:
    kinds = {name: [fallback if fallback is not None else False, word] for name, (_, fallback, word) in KINDS.items()}
    end = "await OpenFeature.close();" if kind == "server" else "await OpenFeature.close(); console.log(statuses);"
    code = f"const KINDS = {json.dumps(kinds)};\n{SERVER if kind == 'server' else PAGE}{EVERY_KIND}{end}"
    printed = node(at(served, code)).splitlines()
    found = json.loads(printed[0])
    for name, (values, _, _) in KINDS.items():
        one = found[name]
        assert "errorCode" not in one, one
        assert one["value"] == values["ab".index(one["variant"])]
        assert (one["reason"], one["flagMetadata"]["probability"]) == ("SPLIT", 0.5)
    assert found["again"]["flagMetadata"] == found["text"]["flagMetadata"]
    assert found["nowhere"]["errorCode"] == "FLAG_NOT_FOUND"
    assert (found["mistaken"]["value"], found["mistaken"]["errorCode"]) == ("none", "TYPE_MISMATCH")
    assert found["over"]["value"] == "none"
    if kind == "page":
        assert found["over"]["reason"] == "DISABLED"
        assert printed[1].startswith("[ 200, 304, 304")


def test_all_providers_show_the_same_to_the_same_person(served: Served) -> None:
    native = served.post("/v1/experiments/text/decisions", {"subject": "kraken"}).json()
    code = SERVER + 'console.log(JSON.stringify(await flags.getStringDetails("text", "none", ...CONTEXT)));'
    found = json.loads(node(at(served, code)))
    assert (found["variant"], found["flagMetadata"]["decision_id"]) == (native["arm"], native["decision_id"])
