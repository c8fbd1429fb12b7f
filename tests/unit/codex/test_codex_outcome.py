from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from relay_receiver.adapters import codex_outcome
from relay_receiver.adapters.base import Finished, Result, Scope
from relay_receiver.adapters.codex_turn import Turn
from relay_receiver.adapters.jsonrpc import Fault

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC).timestamp()


def a_turn(**facts: Any) -> Turn:
    return Turn(key="j.1", thread="T", id="U", **facts)


def failed(info: Any, message: str = "boom", *, items: Sequence[Any] = (), **facts: Any) -> Finished:
    ended = {"id": "U", "status": "failed", "error": {"message": message, "codexErrorInfo": info}}
    return codex_outcome.finished(a_turn(**facts), ended, items, now=NOW)


def http(name: str, status: int | None) -> dict[str, Any]:
    return {name: {"httpStatusCode": status}}


@pytest.mark.parametrize(
    ("info", "code"),
    [
        ("usageLimitExceeded", "usage_limit"),
        ("rateLimitExceeded", "overloaded"),
        ("serverOverloaded", "overloaded"),
        ("unauthorized", "unauthorized"),
        (http("responseTooManyFailedAttempts", 429), "overloaded"),
        (http("httpConnectionFailed", 401), "unauthorized"),
        (http("httpConnectionFailed", 503), "overloaded"),
        (http("httpConnectionFailed", None), "refused"),
    ],
)
def test_what_says_nothing_of_the_request_is_refused_before_the_model_began(info: Any, code: str) -> None:
    end = failed(info)
    assert end.result is Result.REFUSED
    assert end.refused is not None
    assert (end.refused.scope, end.refused.code) == (Scope.BINDING, code)


@pytest.mark.parametrize("info", ["usageLimitExceeded", http("responseTooManyFailedAttempts", 429)])
def test_after_an_item_of_the_model_the_same_is_a_failure(info: Any) -> None:
    assert failed(info, started=True).result is Result.FAILED
    assert failed(info, items=[{"type": "commandExecution"}]).result is Result.FAILED
    assert failed(info, items=[{"type": "userMessage"}]).result is Result.REFUSED


@pytest.mark.parametrize(
    ("info", "message", "words"),
    [
        ("contextWindowExceeded", "ran out", "context window"),
        ("other", "stream disconnected before completion: closed", "broke off"),
        ("other", "idle timeout waiting for SSE", "broke off"),
        (http("responseStreamDisconnected", None), "x", "broke off"),
        ("internalServerError", "x", "error of its own"),
        ("other", '{"error": {"message": "bad schema", "type": "invalid_request_error"}}', "did not take the request"),
        ("newWord", "whatever", "whatever"),
        (None, "", "an error"),
        (http("httpConnectionFailed", 418), "teapot", "teapot"),
    ],
)
def test_a_failure_is_told_in_words(info: Any, message: str, words: str) -> None:
    end = failed(info, message)
    assert end.result is Result.FAILED
    assert words in end.reason
    assert "{" not in end.reason


def test_a_failure_keeps_the_text_there_is() -> None:
    assert failed("internalServerError", text="so far").text == "so far"


def test_the_reset_time_comes_from_the_limits_or_from_the_words() -> None:
    assert failed("usageLimitExceeded", resets_at=NOW + 60).refused.retry_at == NOW + 60
    local = datetime.fromtimestamp(NOW).astimezone()
    later = local.replace(hour=23, minute=59)
    end = failed("usageLimitExceeded", f"You've hit your usage limit, try again at {later:%-I:%M %p}.")
    assert end.refused.retry_at == later.timestamp()


def test_a_reset_time_of_another_day_has_its_date() -> None:
    found = codex_outcome.resets_at({"message": "or try again at Dec 22nd, 2026 3:02 AM."}, now=NOW)
    assert datetime.fromtimestamp(found).astimezone().strftime("%Y-%m-%d %H:%M") == "2026-12-22 03:02"
    assert codex_outcome.resets_at({"message": "try again later"}, now=NOW) is None


def test_a_time_that_has_passed_today_is_tomorrow() -> None:
    found = codex_outcome.resets_at({"message": "try again at 12:00 AM."}, now=NOW)
    assert 0 < found - NOW <= 24 * 3600


def test_interrupted_by_us_is_cancelled_and_otherwise_unknown() -> None:
    ended = {"id": "U", "status": "interrupted"}
    ours = codex_outcome.finished(a_turn(interrupting=True, commands={"c": "sleep"}), ended, (), now=NOW)
    assert ours.result is Result.CANCELLED
    assert ours.evidence["commandsStillRunning"] == ["sleep"]
    assert codex_outcome.finished(a_turn(), ended, (), now=NOW).result is Result.UNKNOWN


def test_completed_without_a_word_is_completed_with_no_text() -> None:
    end = codex_outcome.finished(a_turn(), {"id": "U", "status": "completed"}, (), now=NOW)
    assert (end.result, end.text) == (Result.COMPLETED, "")


@pytest.mark.parametrize(
    ("fault", "scope"),
    [
        (Fault("Input exceeds", -32602, {"input_error_code": "input_too_large"}), Scope.JOB),
        (Fault("thread not found: T", -32600), Scope.BINDING),
        (Fault("anything", -32603), Scope.BINDING),
    ],
)
def test_an_error_answer_to_the_hand_over_refuses(fault: Any, scope: Any) -> None:
    assert codex_outcome.refused(a_turn(), fault).scope is scope
