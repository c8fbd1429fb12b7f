"""Slips of a person at the keyboard: nothing is half done, and what is said next helps."""

import json
from pathlib import Path

from support_cli import machine


def test_slips_change_nothing_and_say_what_to_do(tmp_path: Path) -> None:
    with machine(tmp_path / "here") as here:
        here.ok("hub", "start", "--port", "0")
        made = here.ok("channels", "create", "lab")
        assert "next: relay peers" in here.text("status")
        here.ok("connect", made["invite"]["connect"].split()[2].strip("'"), "--name", "bob")
        person, agent = ("--profile", "default"), ("--profile", "bob")

        declared = here.ok(*person, "status", "set", "--mode", "paused", "--text", "out")
        assert [each["text"] for each in here.ok(*person, "status", "show")["statuses"]] == [declared["text"]]

        slip = here.relay(*person, "messages", "send", "--wait", "5", "--content", "nobody asked")
        assert (slip.code, slip.err["code"]) == (2, "usage")
        assert here.ok(*person, "messages", "list")["messages"] == []
        sent = here.ok(*person, "messages", "send", "--content", "hello")
        slip = here.relay(*person, "messages", "wait", sent["id"])
        assert (slip.code, slip.err["hint"]) == (2, f"relay messages show {sent['id']} --profile default")
        slip = here.relay(*person, "messages", "send", "--to", "bob", "--expires", "99999999999d", "--content", "x")
        assert (slip.code, slip.err["code"]) == (2, "usage")
        slip = here.relay(*person, "messages", "send", "--content-file", "/no/such")
        assert slip.err["hint"] == "Look at the path, then type it again."
        assert here.relay("--profile", "nosuch", "whoami").err["hint"] == "relay profile list"

        binding = ["--adapter", "command", "--argv", here.argv, "--directory", str(here.project), "--wake", "all"]
        started = here.ok(*agent, "receiver", "start", *binding)
        same = here.ok(*agent, "receiver", "start", *binding, "--no-network", "--chain-limit", "3", "--ceiling", "1h")
        assert same == {"state": "already_running", "pid": started["pid"]}
        for other in (["--directory", "/"], ["--argv", json.dumps(["/bin/cat"])], ["--wake", "manual"], ["--network"]):
            slip = here.relay(*agent, "receiver", "start", *other)
            assert (slip.code, slip.err["code"]) == (1, "running"), other
        slip = here.relay(*agent, "receiver", "adopt")
        assert (slip.code, slip.err["code"]) == (1, "running")
        assert here.ok(*agent, "receiver", "status")["pid"] == started["pid"]


def test_an_attachment_is_fetched_into_a_new_file_and_never_over_another(tmp_path: Path) -> None:
    with machine(tmp_path / "here") as here:
        here.ok("hub", "start", "--port", "0")
        here.ok("channels", "create", "lab")
        (here.project / "a b.bin").write_bytes(b"\x00\xff" * 1000)
        sent = here.ok("messages", "send", "--content", "see", "--attach", "a b.bin")
        [attached] = sent["attachments"]
        line = f"relay messages fetch {attached['id']} --save './a b.bin'"
        assert line in here.text("messages", "show", sent["id"])
        fetch = ("messages", "fetch", attached["id"], "--save")
        assert here.ok(*fetch, "copy.bin")["size"] == 2000
        assert (here.project / "copy.bin").read_bytes() == b"\x00\xff" * 1000
        (here.project / "copy.bin").write_text("mine")
        assert here.relay(*fetch, "copy.bin").code == 1
        assert (here.project / "copy.bin").read_text() == "mine"
        assert here.relay("messages", "fetch", "0" * 64, "--save", "other").code == 3
        assert not (here.project / "other").exists()
