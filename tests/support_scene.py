"""A hub with something on every page of its console, for looking at the pages and for taking pictures of them."""

import time
from dataclasses import dataclass
from typing import Any

from support_hub import LiveHub, Member

from relay_receiver.wire.message import iso

REPORT = {
    "wake": "addressed",
    "adapter": "codex",
    "transport": {"name": "websocket", "why": "connected"},
    "lease": "held",
    "queue": {"queued": 2, "received": 0},
    "chain": {"count": 1, "limit": 3, "paused": False, "pause": None},
    "needs": [],
}
FORM = {
    "type": "object",
    "properties": {
        "summary": {"type": "string", "title": "Summary", "maxLength": 200},
        "level": {"type": "string", "title": "Level", "enum": ["low", "high"]},
        "count": {"type": "integer", "title": "Number of changes", "minimum": 0, "maximum": 99},
        "areas": {"type": "array", "title": "Areas", "items": {"enum": ["api", "console", "command line"]}},
        "breaking": {"type": "boolean", "title": "Breaking", "description": "Does it break clients?"},
    },
    "required": ["summary", "breaking"],
}
PATCH = "@@ -1,3 +1,3 @@\n def total(items):\n-    return sum(items)\n+    return round(sum(items), 2)\n"
HANDBOOK = """\
How we work in this channel.

- One **request** at a time, with what *done* means.
- Ask a person before anything leaves this machine.

| step | who |
|---|---|
| tests | bob |
| release | ann |

```sh
make test
```
"""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Who is there, and every page that there is by its name."""

    owner: Member
    bob: Member
    ann: Member
    lab: str
    pages: dict[str, str]


def scene(hub: LiveHub) -> Scene:
    """A person, three agents at work in two channels, and what waits for the person."""
    owner = hub.owner()
    lab, operations = hub.channel(owner, "lab"), hub.channel(owner, "operations")
    bob, ann = hub.agent(owner, lab, "bob"), hub.agent(owner, lab, "ann")
    carl = hub.agent(owner, operations, "carl")
    hub.agent(owner, lab, "Eve Miller", person=True)
    wanted, unknown = _talk(owner, bob, ann, lab)
    _reports(bob, ann, carl, lab, operations, wanted=wanted, unknown=unknown)
    pages = {
        "overview": "/",
        "channel": f"/channels/{lab}",
        "message": f"/m/{wanted}",
        **_requests(owner, bob, ann, lab),
        "needs": "/needs",
        "receivers": "/receivers",
        "members": "/members",
        **_shared(owner, bob, ann, lab, operations),
        "search": "/search?q=release",
    }
    return Scene(owner=owner, bob=bob, ann=ann, lab=lab, pages=pages)


def _talk(owner: Member, bob: Member, ann: Member, lab: str) -> tuple[str, str]:
    said: list[dict[str, Any]] = []

    def say(who: Member, content: str, **more: Any) -> dict[str, Any]:
        body = {"channel": lab, "kind": "message", "content": content, "operationId": f"scene-{len(said)}", **more}
        said.append(dict(who.post("/messages", body)))
        return said[-1]

    say(owner, "Good morning. The **failing build** comes first; how we work is in the handbook.")
    first = say(owner, "Which tests fail in the payment service?", kind="request", to=bob.id)
    say(bob, "`test_rounding` fails since Monday.", kind="result", replyTo=first["id"], outcome="completed")
    say(ann, "The migration of `users` is done. @bob can go on.\n\n```sh\nmake migrate\n```")
    wanted = say(owner, "Mend it, and run the tests again.", kind="request", to=bob.id)
    unknown = say(owner, "Put release 2.4 on staging.", kind="request", to=ann.id)
    return str(wanted["id"]), str(unknown["id"])


def _reports(bob: Member, ann: Member, carl: Member, lab: str, operations: str, *, wanted: str, unknown: str) -> None:
    now = time.time()

    def tell(who: Member, channel: str, state: str, detail: str | None = None, **more: Any) -> int:
        body = {"channel": channel, "holderId": f"h-{who.id}", "sessionId": None, "runtime": "relay", "state": state}
        return int(who.post("/receiver", {**body, "detail": detail, "report": {**REPORT, **more}})["fence"])

    def run(who: Member, fence: int, message: str, job: str, *stages: dict[str, Any]) -> None:
        body = {"channel": lab, "holderId": f"h-{who.id}", "fence": fence, "requestId": job, "message": message}
        who.post("/receiver/run", {**body, "action": "begin", "attempt": 1, "claim": job})
        for each in stages:
            who.post("/receiver/run", {**body, "action": "stage", **each})

    job = {"id": "job-1", "message": wanted, "state": "waiting", "attempt": 1, "startedAt": iso(now - 300)}
    fence = tell(bob, lab, "busy", job={**job, "note": "asked to run, outside the sandbox: npm test"})
    run(bob, fence, wanted, "job-1", {"state": "running"}, {"state": "waiting", "detail": "asks to run npm test"})
    evidence = {
        "stderr": "deploy: connection reset\ndeploy: trying again",
        "changed": [{"path": "deploy/staging.lock", "size": 12, "modifiedAt": iso(now - 150)}],
    }
    history = [
        {"at": iso(now - 200), "from": "queued", "to": "submitting", "who": "receiver"},
        {"at": iso(now - 100), "from": "running", "to": "unknown", "who": "receiver", "why": "the keeper is gone"},
    ]
    sheet = {"job": "job-2", "message": unknown, "attempt": 1, "why": "the agent was killed while it worked"}
    fence = tell(
        ann,
        lab,
        "unknown",
        chain={"count": 3, "limit": 3, "paused": True, "pause": "p1"},
        unknown={**sheet, "text": "Release 2.4 is on staging.", "history": history, "evidence": evidence},
    )
    run(ann, fence, unknown, "job-2", {"state": "running"}, {"state": "unknown", "detail": "the agent was killed"})
    fault = "The program claude is not there any more."
    tell(carl, operations, "refused", fault, adapter="command", needs=[{"what": "fault", "why": fault}])


def _requests(owner: Member, bob: Member, ann: Member, lab: str) -> dict[str, str]:
    until = iso(time.time() + 86_000)

    def ask(who: Member, operation: str, **body: Any) -> dict[str, Any]:
        return dict(who.post("/requests", {"channel": lab, "operationId": operation, "expiresAt": until, **body}))

    action = {
        "kind": "command",
        "command": "/bin/bash -lc 'npm test --workspace payments'",
        "cwd": "/home/bob/payments",
        "agentSays": "The tests need the network to fetch fixtures.",
    }
    approval = ask(bob, "a", kind="approval", title="Run outside the sandbox: npm test", action=action)
    patch = {"kind": "patch", "changes": [{"path": "src/pay.py", "kind": {"type": "update"}, "diff": PATCH}]}
    declined = ask(bob, "b", kind="approval", title="Change files: src/pay.py", action=patch)
    said = {"answer": {"decision": "decline"}, "actionHash": declined["actionHash"]}
    owner.post(f"/requests/{declined['id']}/respond", said)
    options = [
        {"id": "a", "label": "PostgreSQL", "description": "as in production"},
        {"id": "b", "label": "SQLite"},
    ]
    choice = ask(bob, "c", kind="choice", title="Which database for the tests?", options=options)
    form = ask(ann, "d", kind="form", title="Release notes for 2.4", schema=FORM)
    text = ask(ann, "e", kind="input", title="What is release 2.4 called?")
    found = {"approval": approval, "answered": declined, "choice": choice, "form": form, "question": text}
    return {f"request-{name}": f"/requests/{each['id']}" for name, each in found.items()}


def _shared(owner: Member, bob: Member, ann: Member, lab: str, operations: str) -> dict[str, str]:
    doc = owner.post("/docs", {"channel": lab, "title": "Handbook", "content": HANDBOOK})
    owner.patch(f"/docs/{doc['id']}", {"rev": 1, "content": f"{HANDBOOK}\nAsk when in doubt.\n"})
    mend = {"channel": lab, "title": "Mend the build", "description": "It fails since *Monday*.", "state": "doing"}
    task = owner.post("/tasks", {**mend, "assignee": bob.id, "doc": doc["id"]})
    owner.post("/tasks", {"channel": lab, "title": "Write the release notes", "assignee": ann.id})
    owner.post("/tasks", {"channel": operations, "title": "Rotate the keys"})
    return {
        "docs": "/docs",
        "document": f"/docs/{doc['id']}",
        "document-change": f"/docs/{doc['id']}/edit",
        "document-new": "/docs/new",
        "document-history": f"/docs/{doc['id']}/history",
        "tasks": "/tasks",
        "task": f"/tasks/{task['id']}",
    }
