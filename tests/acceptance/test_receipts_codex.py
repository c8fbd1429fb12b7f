"""A real Codex that waits for a person: what its requester, those behind it, and the person are shown."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support_approvals import asked, respond
from support_codex import codex_world
from support_time import WITHIN
from support_world import World, until

from relay_receiver.receiver import verbs


def delivery(w: World, message: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = w.do("owner", lambda hub: hub.message(message["id"]))["delivery"]
    return found


def status() -> tuple[int, dict[str, Any]]:
    line = [sys.executable, "-m", "relay_receiver.cli.main", "--output", "json", "status"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=WITHIN, env=dict(os.environ))
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


def test_an_approval_is_seen_by_all_whom_it_concerns(tmp_path: Path) -> None:
    with codex_world(tmp_path, tools=False) as (w, _, ada):
        verbs.start(ada)
        sent, behind = w.ask(ada, f"model: escalate touch {tmp_path / 'outside'}"), w.ask(ada, "model: say after")
        [request] = asked(w)
        w.until_stage(sent["id"], "waiting")
        shown = until(lambda: (now := delivery(w, sent))["waitsOn"] and now, seconds=WITHIN, what="on whom it waits")
        [waits] = shown["waitsOn"]
        assert (shown["reason"], waits["request"], waits["kind"]) == ("person", request["id"], "approval")
        assert (waits["people"], waits["expiresAt"]) == (None, request["expiresAt"])
        w.until_stage(behind["id"], "received")
        held = until(
            lambda: (now := delivery(w, behind))["detail"] and "waits on a person" in now["detail"] and now,
            seconds=WITHIN,
            what="the reason of the next one",
        )
        assert (held["reason"], held["position"]) == ("busy", 1)
        code, told = status()
        assert (code, [(each["what"], each["next"]) for each in told["needsYou"]]) == (
            4,
            [("approval", f"relay requests show {request['id']} --profile owner")],
        )
        respond(w, request, "decline")
        w.until_stage(behind["id"], "answered", seconds=WITHIN)
        assert (delivery(w, sent)["stage"], delivery(w, sent)["waitsOn"]) == ("answered", [])
        assert status()[0] == 0
