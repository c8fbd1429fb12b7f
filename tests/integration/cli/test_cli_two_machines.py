"""What people type, in two terminals with two homes: the short way and the long way, and what goes wrong on them."""

import json
import subprocess
import sys
from pathlib import Path

from support_cli import machine
from support_time import WITHIN


def test_two_machines_tonight(tmp_path: Path) -> None:
    with machine(tmp_path / "here") as here, machine(tmp_path / "there") as there:
        hub = here.ok("hub", "start", "--port", "0")
        assert (hub["state"], hub["profile"]) == ("ready", "default")
        assert here.ok("hub", "start", "--port", "0")["state"] == "already_running"
        made = here.ok("channels", "create", "lab")
        line = made["invite"]["connect"].split()
        assert line[:2] == ["relay", "connect"]
        joined = there.ok("connect", line[2].strip("'"), "--name", "bob")
        assert joined["channel"] == made["id"]
        assert there.ok("connect", line[2].strip("'"), "--name", "bob") == joined
        binding = ["--adapter", "command", "--argv", there.argv, "--directory", str(there.project)]
        started = there.ok("receiver", "start", *binding)
        assert started["state"] == "ready"
        again = there.ok("receiver", "start", *binding)
        assert again == {"state": "already_running", "pid": started["pid"]}

        for words in (["receiver", "status"], ["receiver", "start"], ["status"], ["top"]):
            assert there.modules(*words) == [], words

        answer = here.ok("messages", "send", "--to", "bob", "--wait", "60", "--content", "do it")
        assert answer["delivery"]["stage"] == "answered"
        assert answer["result"]["content"] == "did it"
        assert answer["result"]["replyTo"] == answer["request"]["id"]
        assert (there.project / "jobs").read_text().count("\n") == 1

        [job] = there.ok("receiver", "jobs")["jobs"]
        assert job["state"] == "done"
        assert there.ok("receiver", "job", job["id"])["history"]
        status = there.ok("receiver", "status")
        assert (status["state"], status["pid"]) == ("ready", started["pid"])
        assert "ready (channel lab" in there.text("receiver", "status")
        assert there.ok("receiver", "logs")["lines"]
        overview = here.text("status")
        assert hub["url"] in overview
        assert here.ok("doctor")["ok"]
        assert "automatic wake works" in there.text("doctor")

        changed = there.ok("receiver", "settings", "--chain-limit", "5", "--ceiling", "30m")
        assert (changed["chain"]["limit"], changed["ceilingSeconds"]) == (5, 1800)
        assert "chain 0 of 5" in there.text("receiver", "settings")
        assert there.ok("receiver", "resume")["chain"]["paused"] is False
        assert there.ok("receiver", "restart")["state"] == "ready"
        refused = there.relay("receiver", "settle", job["id"], "--retry", "--profile", "bob")
        assert (refused.code, refused.err["hint"]) == (1, f"relay receiver job {job['id']} --profile bob")

        assert there.ok("receiver", "stop")["state"] == "stopped"
        assert there.text("status").endswith("next: relay receiver start\n")
        assert "nothing changed" in there.text("receiver", "disable")
        sent = here.ok("messages", "send", "--to", "bob", "--content", "later")
        waited = here.relay("messages", "wait", sent["id"], "--timeout", "0.3")
        assert waited.code == 5
        assert waited.out["delivery"]["stage"] == "stored"
        assert waited.out["result"] is None
        assert "nothing wakes the agent" in there.text("doctor")
        assert here.ok("messages", "withdraw", sent["id"])
        assert here.relay("messages", "wait", sent["id"]).code == 1


def test_the_long_way(tmp_path: Path) -> None:
    with machine(tmp_path / "here") as here, machine(tmp_path / "there") as there:
        data, ready = tmp_path / "data", tmp_path / "ready"
        argv = ["hub", "serve", "--port", "0", "--data", str(data), "--ready-file", str(ready)]
        serving = subprocess.Popen(
            [sys.executable, "-m", "relay_receiver.cli.main", *argv], env=here.environment(), stderr=subprocess.DEVNULL
        )
        try:
            while not ready.exists():
                assert serving.poll() is None
            assert json.loads(ready.read_text())["pid"] == serving.pid
            owner = here.ok("connection", "import", "--stdin", say=(data / "owner.json").read_text())
            assert owner["profile"] == "default"
            channel = here.ok("channels", "create", "lab")
            assert here.ok("channels", "list")["channels"] == [{"id": channel["id"], "name": "lab"}]
            invite = here.ok("invites", "create", "--channel", "lab")
            url = here.ok("spaces", "list")["spaces"][0]["url"]
            assert there.ok("connect", invite["code"], "--server", url, "--name", "bob")["agentId"]
            configured = there.ok("receiver", "configure", "--adapter", "command", "--argv", there.argv)
            assert configured["directory"] == str(there.project)
            assert there.ok("receiver", "start")["state"] == "ready"
            sent = here.ok("messages", "send", "--kind", "request", "--to", "bob", "--content", "-", say="do it\n")
            assert sent["content"] == "do it\n"
            assert [each["name"] for each in sent["wakes"]] == ["bob"]
            assert sent["wakes"][0]["receiver"]
            waited = here.ok("messages", "wait", sent["id"], "--timeout", "60s")
            assert waited["result"]["replyTo"] == sent["id"]
            listed = here.ok("messages", "list")["messages"]
            assert [each["kind"] for each in listed] == ["request", "result"]
            assert [each["name"] for each in here.ok("peers")["peers"] if each["kind"] == "agent"] == ["bob"]
            assert there.ok("whoami")["name"] == "bob"
            assert there.ok("status", "set", "--mode", "available", "--text", "here")["mode"] == "available"
            [declared] = here.ok("status", "show")["statuses"]
            assert declared["text"] == "here"
            [delivery] = here.ok("inbox", "pull", "--new")["deliveries"]
            here.ok("messages", "send", "--content", "hi @bob", "--attach", str(there.program))
            [delivery] = here.ok("inbox", "pull")["deliveries"]
            assert delivery["events"][0]["data"]["message"]["attachments"]
            here.ok("inbox", "ack", delivery["subscription"], delivery["cursor"])
            acknowledged = {each["id"] for each in delivery["events"]}
            left = here.ok("inbox", "pull")["deliveries"][0]["events"]  # bob's answer may be there by now
            assert acknowledged.isdisjoint(each["id"] for each in left)
            here.ok("profile", "update", "--signature", "first")
            assert here.ok("profile", "show")["identity"]["signature"] == "first"
            assert there.ok("channels", "leave", "--channel", "lab")["left"]
            assert there.ok("whoami")["channels"] == []
            assert there.ok("receiver", "stop", "--now")["state"] == "stopped"
        finally:
            serving.terminate()
            serving.wait(WITHIN)


def test_every_error_on_the_way_is_one_sentence_with_what_to_do(tmp_path: Path) -> None:
    with machine(tmp_path / "here") as here, machine(tmp_path / "there") as there:
        assert (here.relay("messages", "list").code, here.relay("messages", "list").err["code"]) == (3, "no_profile")
        hub = here.ok("hub", "start", "--port", "0")
        invite = here.ok("channels", "create", "lab")["invite"]
        wrong = there.relay("connect", f"{hub['url']}#wrong", "--name", "bob")
        assert wrong.code == 3
        assert there.ok("profile", "list") == {"profiles": []}
        there.ok("connect", f"{hub['url']}#{invite['code']}", "--name", "bob")
        cases = {
            ("receiver", "start", "--adapter", "command", "--argv", '["/no/such/program"]'): 1,
            ("receiver", "start", "--argv", "nonsense"): 2,
            ("receiver", "start", "--channel", "nowhere"): 1,
            ("receiver", "jobs"): 1,
            ("messages", "send", "--to", "carl", "--content", "x"): 1,
            ("messages", "send", "--channel", "nowhere", "--content", "x"): 1,
            ("messages", "send"): 2,
            ("messages", "show", "nothing"): 3,
            ("messages", "wait", "nothing"): 3,
            ("invites", "create"): 3,
        }
        for words, code in cases.items():
            answer = there.relay(*words)
            assert (answer.code, answer.out) == (code, None), (words, answer)
            assert answer.err["error"].endswith("."), answer
            assert answer.err["hint"], answer
        refused = here.relay("receiver", "start")
        assert (refused.code, refused.err["code"]) == (1, "not_an_agent")
        assert there.relay("receiver", "status").code == 1
        here.ok("hub", "stop")
        assert here.relay("hub", "status").code == 1
        away = there.relay("peers")
        assert (away.code, away.err["code"]) == (3, "hub_away")
        assert not there.relay("doctor").out["ok"]
