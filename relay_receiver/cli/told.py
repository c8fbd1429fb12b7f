"""A receiver and its jobs in words, for people. Programs read the JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from relay_receiver.cli import output
from relay_receiver.cli.options import short
from relay_receiver.jobs.text import clean_name

UNCONFIGURED = "not_configured"
STOPPED = "stopped"


ASKED_LINES = 20
"""Lines of a request, and of stderr, that a sheet shows in text; JSON has all."""
CHANGED_LINES = 20


def status_code(answer: Mapping[str, Any]) -> int:
    """The exit code of a status: 4 where a person is needed, 1 where nothing is configured."""
    if answer.get("state") == UNCONFIGURED:
        return output.ERROR
    return output.PERSON if answer.get("needsPerson") else output.DONE


def next_step(answer: Mapping[str, Any]) -> str:
    """The line that a person types after a status."""
    needs = answer.get("needsPerson") or []
    if needs:
        return str(needs[0]["next"])
    return "relay receiver start" if answer.get("state") in {STOPPED, UNCONFIGURED} else "relay receiver jobs"


def status(answer: Mapping[str, Any]) -> list[str]:
    """A status, one thing a line, the most urgent first."""
    return list(_status(answer))


def _status(now: Mapping[str, Any]) -> Iterator[str]:
    pid = f", process {now['pid']}" if now.get("pid") else ""
    detail = f": {now['detail']}" if now.get("detail") else ""
    yield f"{now.get('state')}{detail} (channel {now.get('channelName')}{pid})"
    for need in now.get("needsPerson") or []:
        yield _need(need)
    # Only Codex has a sandbox; another program may do what its user may.
    net = f", network {'open' if now.get('network') else 'closed'}" if now.get("adapter") == "codex" else ""
    session = f", session {now['sessionId']}" if now.get("sessionId") else ""
    yield f"agent: {now.get('adapter')} in {now.get('directory')}{net}{session}"
    chain, queue = now.get("chain") or {}, now.get("queue") or {}
    paused = ", paused" if chain.get("paused") else ""
    yield f"wake: {now.get('wake')}; chain {chain.get('count')} of {chain.get('limit')}{paused}"
    yield f"queue: {queue.get('queued', 0)} queued, {queue.get('received', 0)} received"
    job = now.get("job")
    if job:
        stalled = ", silent for long" if now.get("stalled") else ""
        yield f"job: {job['id']} {job['state']} (attempt {job['attempt']}){stalled}"
    if now.get("transport"):
        name, why = now["transport"].get("name"), now["transport"].get("why")
        said = f"{name} ({why})" if why else name
        yield f"hub: {said}; lease {(now.get('lease') or {}).get('state')}"
    if now.get("refused"):
        yield f"refused: {now['refused']['why']}; next try {now['refused'].get('nextTry') or 'later'}"
    if now.get("lastError"):
        yield f"last error: {now['lastError']}"


def _need(need: Mapping[str, Any]) -> str:
    if need["what"] == "approval":
        return f"needs you: {need['title']} ({need['request'] or 'the hub has not been told yet'})"
    return f"needs you: {str(need['what']).replace('_', ' ')} {need.get('job') or ''}".rstrip()


def delivery(now: Mapping[str, Any]) -> str:
    """How far a request has come, why it waits, what is before it."""
    said, reason, later, ahead = (now.get(name) for name in ("detail", "reason", "nextTry", "position"))
    line = str(now.get("stage"))
    if said:
        line += f": {said}"
    if reason and reason not in line.replace(" ", "_"):
        line += f" ({reason})"
    if later and str(later) not in line:
        line += f"; next try {later}"
    return f"{line}; {ahead} before it" if ahead else line


def waits_on(now: Mapping[str, Any]) -> list[str]:
    """The requests to people that a job waits for, with the line that shows each."""
    lines = []
    for each in now.get("waitsOn") or ():
        people = "any person of the channel" if each.get("people") is None else ", ".join(each["people"]) or "nobody"
        until = f", until {each['expiresAt']}" if each.get("expiresAt") else ""
        lines.append(f"waits on {people}{until}: {each.get('title')}: relay requests show {each.get('request')}")
    return lines


def needs(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """What needs a person, each with the line to type."""
    lines = ["needs you:"] if found else []
    for each in found:
        until = f" (until {each['expiresAt']})" if each.get("expiresAt") else ""
        who, where = (clean_name(str((each.get(name) or {}).get("name"))) for name in ("who", "channel"))
        title = f": {each['title']}" if each.get("title") else ""
        lines += [f"  {str(each['what']).replace('_', ' ')} of {who} in {where}{title}{until}", f"    {each['next']}"]
    return lines


def rehearsal(wakes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Whom a message would wake, whether their receivers run, and what is in the way."""
    return [*(_woken(each) for each in wakes), "Nothing was sent."] if wakes else ["It would wake nobody."]


def _woken(each: Mapping[str, Any]) -> str:
    name, why = clean_name(str(each.get("name"))), each.get("detail") or each.get("reason")
    if not each.get("wakes"):
        return f"{name}: is not woken: {why}"
    if not why:
        return f"{name}: is woken at once; its receiver is {each.get('state')}"
    runs = "its receiver runs, but" if each.get("runs") else "no receiver runs:"
    ahead = f"; {each['position']} before it" if each.get("position") else ""
    later = f"; next try {each['nextTry']}" if each.get("nextTry") else ""
    return f"{name}: is woken later: {runs} {why}{later}{ahead}"


def started(answer: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What `receiver start` says: that it runs, and where its status says so, that it cannot work yet, and why."""
    works = now.get("state") in {"ready", "busy"}
    word = "runs already" if answer.get("state") == "already_running" else "is ready" if works else "runs"
    lines = [f"The receiver {word}, process {answer.get('pid')}."]
    if works:
        return lines
    why = now.get("detail") or ("it has not reached its hub yet" if now.get("state") == "offline" else None)
    return [*lines, f"It is {now.get('state')}: {why}" if why else f"It is {now.get('state')}."]


def began(answer: Mapping[str, Any]) -> str:
    """What `receiver run` says first."""
    if answer.get("state") == "already_running":
        return f"The receiver runs already, in process {answer.get('pid')}; relay receiver stop ends it."
    return f"The receiver is {answer.get('state')}. Ctrl-C stops it."


def job(answer: Mapping[str, Any]) -> list[str]:
    """One job with its history and evidence."""
    lines = [f"{answer.get('id')} {answer.get('state')}, attempt {answer.get('attempt')}"]
    lines += [
        f"{name}: {answer[name]}" for name in ("message", "author", "outcome", "error", "result") if answer.get(name)
    ]
    if asked := answer.get("asked"):
        lines += [f"asked by {asked.get('author')} at {asked.get('at')}:"]
        lines += [f"  {line}" for line in str(asked.get("text")).splitlines()[:ASKED_LINES]]
    for event in answer.get("history") or []:
        before, after = event.get("from"), event.get("to")
        move = after if before in {None, after} else f"{before} -> {after}"
        lines.append(f"  {event['at']} {move} by {event.get('who')} {event.get('why') or ''}".rstrip())
    lines += [_question(each) for each in answer.get("approvals") or ()]
    evidence = (answer.get("evidence") or {}).items()
    lines += [f"evidence: {name}: {each}" for name, each in evidence if each not in (None, "", [], {})]
    lines += _now(answer.get("now") or {})
    if answer.get("state") == "unknown" and (answer.get("now") or {}).get("processes"):
        lines.append("Settling it ends the processes that are alive.")
    if answer.get("ended"):
        lines.append(f"ended what it had left running: {', '.join(map(str, answer['ended']))}")
    if answer.get("text"):
        lines += ["", *str(answer["text"]).splitlines()]
    return lines


def settled(answer: Mapping[str, Any], verb: str) -> str:
    """What a person's word about a job comes to."""
    match verb:
        case "accept":
            return "It counts as done; its result goes to the requester."
        case "abandon":
            return "It is given up; the requester is told."
        case _:
            return f"It is run again, as attempt {int(answer.get('attempt') or 0) + 1}."


def _question(asked: Mapping[str, Any]) -> str:
    """What the agent asked of people, and what became of it."""
    by = f" by {asked['decidedBy']}" if asked.get("decidedBy") else ""
    why = f": {asked['reason']}" if asked.get("reason") else ""
    return (
        f"  asked at {asked['askedAt']}: {asked['title']} -> {asked['state']}{by}{why} ({asked.get('request') or '-'})"
    )


def _now(now: Mapping[str, Any]) -> list[str]:
    """What can be seen now of a job in flight."""
    if not now:
        return []
    alive = ", ".join(str(each["pid"]) for each in now.get("processes") or []) or "none"
    lines = [f"processes alive: {alive}"]
    changed = now.get("changed") or []
    count = now.get("changedCount") or 0
    more = "" if now.get("directoryWhole", True) else " (the directory is too large to look at whole)"
    lines.append(f"files changed in its directory since it began: {count}{more}")
    lines += [f"  {each['modifiedAt']} {each['path']} ({each['size']} bytes)" for each in changed[:CHANGED_LINES]]
    if now.get("stderr"):
        lines += ["stderr, the last of it:", *(f"  {line}" for line in str(now["stderr"]).splitlines()[-ASKED_LINES:])]
    return lines


def limits(answer: Mapping[str, Any]) -> list[str]:
    """A status with the settings that can be changed while it runs."""
    times = [
        f"{name} {short(answer[f'{name}Seconds'])}" for name in ("ceiling", "stall") if answer.get(f"{name}Seconds")
    ]
    days = f", {answer['keepDays']} days at the most" if answer.get("keepDays") else ""
    kept = f"keeps: the newest {answer.get('keepMessages')} messages{days}, and what is open"
    return [*status(answer), f"limits: {', '.join(times)}", _approvals(answer), kept]


def _approvals(answer: Mapping[str, Any]) -> str:
    if answer.get("approvals") != "ask":
        return "approvals: what the agent asks is declined"
    who = ", ".join(answer.get("approvers") or ()) or "any person of the channel"
    return f"approvals: {who}, within {short(answer.get('approvalSeconds') or 0)}; unanswered is declined"


def facts(answer: Mapping[str, Any]) -> list[str]:
    """Settings as lines; what is empty is left out."""
    lines = []
    for name, value in answer.items():
        if value in (None, "", [], {}, ()):
            continue
        if isinstance(value, list | tuple):
            lines.append(f"{name}: {' '.join(str(each) for each in value)}")
        elif not isinstance(value, Mapping):
            lines.append(f"{name}: {value}")
    return lines
