"""`belated replay` on small logs, and what it refuses."""

import json
import sys
from pathlib import Path

import pytest

from belated import OutcomeRange, cli, replay
from belated.errors import InvalidInput
from belated.replay import log_sections, log_study, pictures
from tests.support.replays import run, write_log


def test_a_log_with_probabilities_is_judged(tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = run(str(write_log(tmp_path / "log.csv")), "--reward", "--out", str(out))
    assert "Outcomes are rewards from 0 to 1, and higher is better." in said
    assert said.rstrip().endswith("report.html")
    results = json.loads((out / "results.json").read_text())["results"]
    best, *_, worst = results["estimates"]
    assert (best["name"], worst["name"]) == ("always <b>", "always a")
    for estimate, rate in ((best, 0.6), (worst, 0.2)):
        for kind in ("ips", "snips"):
            assert estimate[kind]["low"] < rate < estimate[kind]["high"]
    logged = next(one for one in results["estimates"] if one["name"] == "logged")
    for name in ("Means", "Shadow"):
        learner = next(one for one in results["estimates"] if one["name"] == name)
        assert learner["snips"]["low"] > logged["snips"]["high"]  # learning pays
    assert results["waiting"]["n_rounds"] == 3000
    assert results["waiting"]["share_never"] == pytest.approx(0.1, abs=0.03)
    assert set(results["certificates"]) == {"Means", "Shadow", "Simple", "Advanced", "AdaptiveExp3", "Tsallis"}
    page = (out / "report.html").read_text()
    for shown in (" ".join(said.split()), page, results["certificates assume"]):
        assert "The certificates need delays that do not depend on the drawn arm." in shown
    assert "always &lt;b&gt;" in page
    assert "<b>" not in page.split("<main>")[1].split('class="facts"')[0]
    assert {path.name for path in (out / "numbers").iterdir()} == {"delays.csv", "backlog.csv", "off-policy.csv"}


def test_without_probabilities_only_the_past_is_told(tmp_path: Path) -> None:
    said = run(str(write_log(tmp_path / "log.csv", has_probability=False)), "--reward", "--out", str(tmp_path / "out"))
    assert "Start to log the probability each arm was chosen with" in " ".join(said.split())
    results = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    assert [one["name"] for one in results["estimates"]] == ["logged"]


def test_thin_evidence_is_said(tmp_path: Path) -> None:
    log = replay.read(write_log(tmp_path / "log.csv", 60))
    found = log_study.study(log, OutcomeRange(0, 1, better="higher"))
    assert any("the interval is a guess" in words for words in log_sections.doubts(found))
    assert "too few rounds" in " ".join(found.advice.sentences)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("time,arm,outcome,outcome_time\n1,a,0,1\n2,b,zero,3\n", [], "line 3, column 'outcome': 'zero' is not"),
        ("time,arm,outcome,outcome_time\n1,a,0,1\n2,b,7,3\n", [], "line 3: the outcome 7 is outside"),
        ("when,arm,outcome,outcome_time\n1,a,0,1\n", [], "no column 'time'"),
        ("time,arm,outcome,outcome_time\n1,a,0,1\n2,b,0,1\n", [], "line 3, column 'outcome_time'"),
        ("time,arm,outcome,outcome_time\n1,a,0,1\n2,b,0,3\n", ["--lowest", "1"], "lowest must be less than highest"),
        ("time,arm,outcome,outcome_time\n1,a,0,1\n2,b,,\n", ["--default-outcome", "2"], "the default outcome must lie"),
        ("time,arm,outcome,outcome_time\n1,a,0,1\n2,b,0,3\n", ["--wait", "9"], "no decision is older than the wait 9"),
    ],
)
def test_a_malformed_log_is_refused_and_nothing_is_written(
    content: str, options: list[str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text(content)
    with pytest.raises(InvalidInput, match=message):
        run(str(tmp_path / "log.csv"), *options, "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out" / "report.html").exists()


def test_an_error_with_markup_in_it_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.csv").write_text("time,arm,outcome,outcome_time\n1,a,[/b],2\n")
    monkeypatch.setattr(sys, "argv", ["belated", "replay", str(tmp_path / "bad.csv")])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert "line 2, column 'outcome': '[/b]' is not a finite number" in capsys.readouterr().err


def test_an_option_without_effect_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="need a log, as in belated replay FILE"):
        run("--reward", "--out", str(tmp_path / "out"))
    for option in ("--wait", "--default-outcome"):
        with pytest.raises(InvalidInput, match="need a log, as in belated replay FILE"):
            run(option, "1", "--out", str(tmp_path / "out"))
    with pytest.raises(InvalidInput, match="--seeds is for the flights"):
        run(str(write_log(tmp_path / "log.csv")), "--seeds", "3", "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_refused_log_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("time;arm;outcome;outcome_time\n1;a;0,5;2\n")
    with pytest.raises(InvalidInput, match=r"separated by semicolons\. Save it with commas"):
        run(str(tmp_path / "log.csv"), "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_waiting_times_in_words() -> None:
    def words(seconds: float) -> str:
        return pictures.in_words(seconds, has_dates=True)

    assert [words(s) for s in (0.5, 59, 60, 5400, 172800)] == [
        "0.5 seconds",
        "59 seconds",
        "1 minute",
        "1.5 hours",
        "2 days",
    ]
    assert pictures.in_words(5400, has_dates=False) == "5,400"
    assert words(float("nan")) == "-"
