"""A running experiment is operated over HTTP and with the clients. The events name the key."""

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from belated import AsyncClient, Client, cli
from belated.errors import InvalidInput, ServiceError
from tests.support.service import Served


def test_a_client_operates_an_experiment(tmp_path: Path) -> None:
    created = CliRunner().invoke(
        cli.app, ["keys", "create", "--scope", "admin", "--store", str(tmp_path / "belated.db")]
    )
    key = created.stdout.strip()
    with Served(tmp_path) as served, Client(served.url, key=key) as client:
        client.create_experiment("page", ["blue", "green"], floor=0.1, holdout=0.25, reward_wait=60, default_outcome=0)
        decision = client.ask("page")
        assert client.operate("page", "pause")["state"] == "paused"
        with pytest.raises(ServiceError, match="is paused"):
            client.ask("page")
        assert client.tell(decision, reward=1) == "applied"
        client.operate("page", "resume")
        assert client.operate("page", "freeze", arm="blue")["shown"] == "blue"
        assert {(one.arm, one.probability) for one in client.ask("page", size=5)} == {("blue", 1.0)}
        asyncio.run(unfreeze(served.url, key))
        edited = client.operate("page", "edit", floor=0.2, reward_wait=30, description="the colour")
        assert (edited["floor"], edited["reward_wait"], edited["description"]) == (0.2, 30, "the colour")
        with pytest.raises(ServiceError, match=r"from 0 to 0\.5, got 0\.5000001"):
            client.operate("page", "edit", floor=0.5000001)
        for setting in ("name", "action", "self"):  # words that the method knows in another sense
            with pytest.raises(ServiceError, match=f"unknown field {setting}. Known are reward_wait"):
                client.operate("page", "edit", **{setting: "x"})
        with pytest.raises(InvalidInput, match=r"pause, resume, freeze, unfreeze, end, edit, got 'stop'"):
            client.operate("page", "stop")
        assert client.operate("page", "end", winner="green")["state"] == "ended"
        assert client.ask("page").arm == "green"
        by = {"Authorization": f"Bearer {key}"}
        events = served.get("/v1/experiments/page/events", **by).json()["events"]
        said = ["created", "paused", "resumed", "frozen", "unfrozen", "edited", "ended"]
        assert [one["event"] for one in events] == said
        assert {one["by"] for one in events} == {key.split("_")[1]}
        assert [one["event"] for one in client.experiment("page")["events"]] == said[::-1]
        decisions = served.get("/v1/experiments/page/decisions", **by).json()["decisions"]
        assert [one["policy"] for one in decisions[1:]] == ["frozen"] * 5 + ["winner"]
        assert decisions[0]["policy"] in ("learner", "holdout")


async def unfreeze(url: str, key: str) -> None:
    async with AsyncClient(url, key=key) as client:
        assert (await client.operate("page", "unfreeze"))["state"] == "running"
