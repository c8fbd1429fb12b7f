"""What a receiver tells of itself: on a real journal, bounded, without secrets, and told when it changes."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support_parts import Bench, message, refused

from relay_receiver.adapters.base import HandoverLost, Unprovable
from relay_receiver.hub.body import parse
from relay_receiver.receiver import lease as leasing
from relay_receiver.receiver.lease import Lease
from relay_receiver.receiver.report import SHEET_BYTES, Report, fit, secrets_of, veiled

if TYPE_CHECKING:
    from relay_receiver.client.errors import HubError


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


async def _unknown(b: Bench) -> None:
    b.adapter.answers = [HandoverLost("the pipe broke")]
    b.adapter.recovery = Unprovable(reason="nobody knows", evidence={"lines": ["x" * 200_000]})
    b.arrive(message(1))
    await b.until(lambda: b.jobs() == {"m1": "unknown"} and b.hub.posts())


async def _seen(b: Bench, report: Report) -> Any:
    """The report once the evidence was looked for."""
    looking = asyncio.ensure_future(report.run())
    await report.now()
    b.parts.lease_in_doubt.clear()
    await b.parts.lease_in_doubt.wait()
    looking.cancel()
    return await report.now()


def test_an_unknown_job_is_told_with_its_evidence_and_what_is_to_be_done(tmp_path: Path) -> None:
    async def scenario() -> None:
        work = tmp_path / "work"
        work.mkdir()
        async with Bench(tmp_path, directory=str(work)) as b:
            report = Report(b.parts)
            b.clock = 1.0
            await _unknown(b)
            for number in range(150):
                (work / f"{'long' * 40}{number}").write_text("changed")
            told = await _seen(b, report)
            sheet = told["unknown"]
            assert (sheet["message"], sheet["attempt"], told["job"]["state"]) == ("m1", 1, "unknown")
            assert sheet["asked"]["text"] == "do 1"
            assert sheet["now"]["changedCount"] == 150
            assert "the pipe broke" in sheet["error"]
            assert [each["what"] for each in told["needs"]] == ["unknown"]
            assert _size(sheet) <= SHEET_BYTES

    asyncio.run(scenario())


def test_the_evidence_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []
    monkeypatch.setattr("relay_receiver.receiver.evidence.gather", lambda **said: looks.append(said) or {"n": 1})

    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            report = Report(b.parts)
            await _unknown(b)
            told = await _seen(b, report)
            assert told["unknown"]["now"]["n"] == 1
            looking = asyncio.ensure_future(report.run())
            assert await report.now() == told
            looking.cancel()

    asyncio.run(scenario())
    assert len(looks) == 1


def test_neither_arguments_nor_values_of_the_environment_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sesame-opens")

    async def scenario() -> None:
        argv = ("/opt/runner", "--password", "hunter2-hunter2")
        async with Bench(tmp_path, argv=argv, env=("MY_KEY",)) as b:
            b.parts.situation.last_error = "it said sesame-opens"
            told = await Report(b.parts).now()
            assert told is not None
            assert (told["program"], told["lastError"]) == ("runner", "it said [MY_KEY]")
            assert "hunter2" not in json.dumps(told)
            assert "sesame" not in json.dumps(told)

    asyncio.run(scenario())


def test_what_is_hidden_is_hidden_at_any_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT", "ab")
    monkeypatch.setenv("LONG", "abcdefgh")
    hidden = secrets_of(["SHORT", "LONG", "MISSING"])
    assert hidden == {"abcdefgh": "LONG"}
    assert veiled({"a": [{"xabcdefghx": ("abcdefgh", 1)}]}, hidden) == {"a": [{"x[LONG]x": ["[LONG]", 1]}]}


def test_whatever_an_adapter_gives_becomes_json_that_a_hub_takes() -> None:
    deep: Any = "end"
    for _ in range(60):
        deep = {"in": [deep]}
    strange = {
        "deep": deep,
        "numbers": [float("nan"), float("inf"), 2**200, 1.5, True],
        "text": "a\x00b\ud800",
        "many": list(range(5000)),
        "long": "x" * 1_000_000,
        "other": Path("/x"),
    }
    told = fit(strange, chars=SHEET_BYTES, most=SHEET_BYTES, cut="cut here")
    text = json.dumps(told, ensure_ascii=False, allow_nan=False)
    assert len(text.encode()) <= SHEET_BYTES
    assert parse(text.encode())["cut"] == "cut here"
    assert told["text"] == "a\ufffdb\ufffd"
    assert told["numbers"][3:] == [1.5, True]
    assert fit({"a": 1}, chars=10, most=100, cut="cut here") == {"a": 1, "cut": None}
    assert _size(fit({str(n): "x" * 999 for n in range(100)}, chars=1000, most=4096)) <= 4096


class _Hub:
    """Takes leases, and remembers the reports that came with them."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.fail: list[HubError] = []

    async def take_lease(self, **said: Any) -> dict[str, Any]:
        self.told.append(said["report"])
        if self.fail:
            raise self.fail.pop()
        return {"fence": 7, "run": None}


async def _until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_a_change_that_lasts_is_told_out_of_turn_and_one_that_is_undone_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leasing, "NOTICE_SECONDS", 0.01)
    word = ["ready"]

    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            hub = _Hub()
            b.parts.hub = hub  # type: ignore[assignment]  # the one call that is made

            async def gather() -> dict[str, Any]:
                return {"word": word[0]}

            lease = Lease(
                b.parts, state=lambda: "ready", reconcile=lambda _: None, report=gather, notable=lambda: word[0]
            )
            renewing = asyncio.ensure_future(lease.run())
            await _until(lambda: len(hub.told) == 1)
            word[0] = "busy"
            lease.notice()
            word[0] = "ready"
            await _until(lambda: lease._timer is None)
            assert hub.told == [{"word": "ready"}]
            word[0] = "busy"
            lease.notice()
            await _until(lambda: hub.told[-1] == {"word": "busy"})
            lease.notice()
            assert (lease._timer, len(hub.told)) == (None, 2)
            renewing.cancel()

    asyncio.run(scenario())


def test_a_hub_that_does_not_understand_the_report_gives_the_lease_without_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            hub = _Hub()
            hub.fail = [refused("invalid_value", status=422)]
            b.parts.hub = hub  # type: ignore[assignment]  # the one call that is made

            async def gather() -> dict[str, Any]:
                return {"strange": 1}

            lease = Lease(b.parts, state=lambda: "ready", reconcile=lambda _: None, report=gather)
            renewing = asyncio.ensure_future(lease.run())
            await lease.held.wait()
            assert hub.told == [{"strange": 1}, None]
            renewing.cancel()

    asyncio.run(scenario())
