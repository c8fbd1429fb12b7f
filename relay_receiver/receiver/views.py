"""What people and programs are shown of a receiver and its jobs: the stable JSON of `status`, `jobs` and `job`."""

import json
import os
from collections.abc import Sequence
from typing import Any

from relay_receiver.jobs.job import Job
from relay_receiver.jobs.state import JobState
from relay_receiver.journal import approvals, jobs, messages
from relay_receiver.journal import chain as chains
from relay_receiver.journal.approvals import Approval
from relay_receiver.journal.binding import Binding
from relay_receiver.journal.journal import Connection
from relay_receiver.receiver.situation import Situation
from relay_receiver.wire.message import iso

SHOWN_TEXT = 2000
"""Characters of a job's text in a list; `job` shows it whole."""


def job_view(job: Job, *, whole: bool = False) -> dict[str, Any]:
    """One job as `jobs` and `job` show it."""
    text = job.text
    if text is not None and not whole:
        text = text[:SHOWN_TEXT]
    return {
        "id": job.id,
        "message": job.message,
        "event": job.event,
        "state": job.state.value,
        "author": job.author,
        "byAgent": job.by_agent,
        "request": job.request,
        "attempt": job.attempt,
        "chain": {"root": job.root, "hop": job.hop},
        "execution": job.execution,
        "outcome": job.outcome,
        "error": job.error,
        "text": text,
        "result": job.result,
        "cancelRequestedBy": job.cancel,
        "usage": json.loads(job.usage) if job.usage else None,
        "createdAt": iso(job.created_at),
        "submittedAt": _iso(job.submitted_at),
        "startedAt": _iso(job.started_at),
        "endedAt": _iso(job.ended_at),
    }


def jobs_view(conn: Connection, *, limit: int, open_only: bool = False) -> dict[str, Any]:
    """The newest jobs, newest first."""
    return {"jobs": [job_view(job) for job in jobs.list_jobs(conn, limit=limit, open_only=open_only)]}


def job_sheet(conn: Connection, job_id: str) -> dict[str, Any] | None:
    """One job whole, with its history and the evidence that was kept."""
    job = jobs.get(conn, job_id)
    if job is None:
        return None
    history = [
        {"at": iso(event.at), "from": event.source, "to": event.target, "who": event.who, "why": event.why}
        for event in jobs.events(conn, job_id)
    ]
    asked = messages.get(conn, job.message)
    return {
        **job_view(job, whole=True),
        "asked": None
        if asked is None
        else {"author": asked.author.name, "at": asked.created_at, "text": asked.content},
        "key": f"{job.id}.{job.attempt}",
        "keeper": job.keeper,
        "history": history,
        "approvals": [_approval_view(each) for each in approvals.of(conn, job_id)],
        "evidence": json.loads(job.evidence) if job.evidence else None,
    }


def _approval_view(asked: Approval) -> dict[str, Any]:
    """A question to people as `job` shows it: what was shown, who decided what, whether the agent has it."""
    return {
        "id": asked.id,
        "request": asked.request,
        "attempt": asked.attempt,
        "kind": asked.kind.value,
        "title": asked.title,
        "action": json.loads(asked.action),
        "state": asked.state.value,
        "answer": json.loads(asked.answer) if asked.answer else None,
        "decidedBy": asked.decided_by,
        "reason": asked.reason,
        "told": asked.told,
        "askedAt": iso(asked.asked_at),
        "endedAt": _iso(asked.ended_at),
    }


def stored_status(conn: Connection, binding: Binding) -> dict[str, Any]:
    """What the journal alone can say: it holds for a receiver that does not run, too."""
    chain = chains.load(conn)
    counts = jobs.counts(conn)
    in_flight = jobs.in_flight(conn)
    following = jobs.next_queued(conn)
    return {
        "sessionId": binding.session,
        "agent": binding.agent,
        "channel": binding.channel,
        "channelName": binding.channel_name,
        "adapter": binding.adapter,
        "argv": list(binding.argv),
        "directory": str(binding.directory),
        "wake": binding.wake,
        "network": binding.network,
        "tools": binding.tools,
        "ceilingSeconds": binding.ceiling,
        "stallSeconds": binding.stall,
        "approvals": binding.approvals,
        "approvers": list(binding.approvers),
        "approvalSeconds": binding.approval_time,
        "keepMessages": binding.keep_messages,
        "keepDays": binding.keep_days or None,
        "chain": {
            "count": chain.count,
            "limit": chain.limit,
            "paused": following.paused,
            "pause": chains.pause(conn) if following.paused else None,
        },
        "queue": {"queued": counts.get("queued", 0), "received": counts.get("received", 0)},
        "jobs": counts,
        "job": None if in_flight is None else job_view(in_flight),
        "needsPerson": _needs(in_flight, approvals.unanswered(conn), paused=following.paused),
    }


def running_status(situation: Situation, stored: dict[str, Any]) -> dict[str, Any]:
    """The status of this running process."""
    job = stored["job"]
    state = situation.state(None if job is None else job["state"])
    needs = list(stored["needsPerson"])
    if situation.unauthorized:
        needs.append({"what": "unauthorized", "next": "relay connect URL#CODE --name NAME"})
    needs += [{"what": "fault", "why": each.sentence, "next": each.hint} for each in situation.faults.values()]
    if situation.foreign_run is not None:
        settle = f"relay messages settle {situation.foreign_run.get('message')} --abandon --reason TEXT"
        needs.append({"what": "foreign_run", "next": settle})
    return {
        "state": state,
        "detail": situation.detail(),
        "pid": os.getpid(),
        **stored,
        "needsPerson": needs,
        "transport": {"name": situation.transport, "why": situation.transport_why},
        "lease": {"state": situation.lease.value, "fence": situation.fence},
        "proves": situation.proves,
        "refused": None
        if situation.refused is None
        else {
            "why": situation.refused,
            "code": situation.refused_code,
            "nextTry": _iso(situation.retry_at),
        },
        "adapterError": situation.adapter_error,
        "stalled": situation.stalled,
        "lastNote": situation.last_note,
        "lastActivity": _iso(situation.last_activity),
        "lastError": situation.last_error,
        "gap": situation.gap,
    }


def _needs(in_flight: Job | None, asked: Sequence[Approval], *, paused: bool) -> list[dict[str, Any]]:
    needs: list[dict[str, Any]] = [
        {
            "what": "approval",
            "job": each.job,
            "request": each.request,
            "title": each.title,
            "next": f"relay requests show {each.request}" if each.request else f"relay receiver job {each.job}",
        }
        for each in asked
    ]
    if in_flight is not None and in_flight.state is JobState.UNKNOWN:
        needs.append({"what": "unknown", "job": in_flight.id, "next": f"relay receiver job {in_flight.id}"})
    if paused:
        needs.append({"what": "paused", "next": "relay receiver resume"})
    return needs


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else iso(seconds)
