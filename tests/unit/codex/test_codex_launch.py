import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from relay_receiver.adapters import codex_launch
from relay_receiver.adapters.base import AdapterUnusable, Binding


def a_program(folder: Path, name: str = "codex", script: str = "echo codex-cli 1.2.3") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def a_binding(root: Path, environment: dict[str, str] | None = None, **settings: Any) -> Binding:
    built = {"HOME": str(root / "home"), "PATH": f"{root / 'bin'}:/usr/bin:/bin", **(environment or {})}
    return Binding(settings=settings, directory=root, environment=built, spool=root / "spool", runtime=root / "runtime")


def overrides(launch: codex_launch.Launch) -> dict[str, Any]:
    """The settings on the command line, read as Codex reads them: a dotted path and a TOML value."""
    given = [launch.argv[index + 1] for index, part in enumerate(launch.argv) if part == "-c"]
    return {name: tomllib.loads(f"v={value}")["v"] for name, _, value in (part.partition("=") for part in given)}


@pytest.mark.parametrize("network", [True, False])
def test_the_network_is_given_either_way_so_that_codex_own_settings_do_not_decide(
    tmp_path: Path,
    network: bool,  # noqa: FBT001 - a case
) -> None:
    a_program(tmp_path / "bin")
    launch = codex_launch.plan(a_binding(tmp_path, network=network))
    assert overrides(launch) == {"sandbox_workspace_write.network_access": network}
    assert launch.argv[:2] == (str(tmp_path / "bin" / "codex"), "app-server")


def test_tools_run_by_this_python_and_never_import_from_the_directory_of_the_job(tmp_path: Path) -> None:
    a_program(tmp_path / "bin")
    launch = codex_launch.plan(a_binding(tmp_path, {"HTTPS_PROXY": "http://user:secret@proxy"}, tools=True))
    given = overrides(launch)
    assert given["mcp_servers.relay.command"] == sys.executable
    assert given["mcp_servers.relay.args"] == ["-P", "-m", "relay_receiver.cli.main", "mcp"]
    assert given["mcp_servers.relay.env.RELAY_JOB"] == str(tmp_path / "spool" / "agent.job")
    assert given["mcp_servers.relay.default_tools_approval_mode"] == "approve"
    assert given["mcp_servers.relay.tool_timeout_sec"] > 600
    assert given["mcp_servers.relay.env_vars"] == ["HTTPS_PROXY"]
    assert not any("secret" in part for part in launch.argv)


def test_a_given_command_keeps_its_own_arguments(tmp_path: Path) -> None:
    program = a_program(tmp_path / "bin", "wrapper")
    launch = codex_launch.plan(a_binding(tmp_path, argv=[str(program), "app-server", "-c", 'model="m"']))
    assert launch.argv[:4] == (str(program), "app-server", "-c", 'model="m"')
    assert launch.argv.count("app-server") == 1


def test_the_environment_is_the_built_one_and_says_that_this_is_a_job(tmp_path: Path) -> None:
    a_program(tmp_path / "bin")
    binding = a_binding(tmp_path)
    launch = codex_launch.plan(binding)
    assert dict(launch.environment) == {**binding.environment, "RELAY_JOB": str(tmp_path / "spool" / "agent.job")}


def test_what_changes_the_app_server_changes_its_fingerprint(tmp_path: Path) -> None:
    a_program(tmp_path / "bin")
    same = codex_launch.plan(a_binding(tmp_path)).fingerprint
    assert codex_launch.plan(a_binding(tmp_path)).fingerprint == same
    assert codex_launch.plan(a_binding(tmp_path, network=True)).fingerprint != same
    assert codex_launch.plan(a_binding(tmp_path, {"LANG": "C"})).fingerprint != same


def test_odd_characters_reach_codex_as_they_are(tmp_path: Path) -> None:
    root = tmp_path / 'a "b" \\ ü\x7f'
    a_program(tmp_path / "bin")
    root.mkdir()
    binding = a_binding(root, {"PATH": str(tmp_path / "bin")}, tools=True)
    given = overrides(codex_launch.plan(binding))
    assert given["mcp_servers.relay.env.RELAY_JOB"] == str(root / "spool" / "agent.job")


def test_check_finds_codex_on_path_and_says_what_is_known(tmp_path: Path) -> None:
    a_program(tmp_path / "bin")
    (tmp_path / "home" / ".codex").mkdir(parents=True)
    (tmp_path / "home" / ".codex" / "auth.json").write_text("{}")
    found = codex_launch.check(a_binding(tmp_path))
    assert found["argv"] == [str(tmp_path / "bin" / "codex")]
    assert found["version"] == "codex-cli 1.2.3"
    assert found["signedIn"] is True


@pytest.mark.parametrize("config", ['model_provider = "local"', 'cli_auth_credentials_store = "keyring"'])
def test_check_does_not_claim_to_know_what_only_codex_knows(tmp_path: Path, config: str) -> None:
    a_program(tmp_path / "bin")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "config.toml").write_text(config)
    found = codex_launch.check(a_binding(tmp_path, {"CODEX_HOME": str(tmp_path / "elsewhere")}))
    assert found["signedIn"] is None


@pytest.mark.parametrize(
    ("script", "argv", "code", "words"),
    [
        (None, None, "missing", "install Codex"),
        (None, ["/no/such/codex"], "missing", "--argv"),
        ("echo broken >&2; exit 3", None, "missing", "broken"),
        ("exit 0", None, "unauthorized", "codex login"),
    ],
)
def test_check_refuses_what_cannot_work_in_one_sentence(
    tmp_path: Path, script: str | None, argv: list[str] | None, code: str, words: str
) -> None:
    if script is not None:
        a_program(tmp_path / "bin", script=script)
    settings = {} if argv is None else {"argv": argv}
    with pytest.raises(AdapterUnusable, match=words) as refused:
        codex_launch.check(a_binding(tmp_path, **settings))
    assert refused.value.code == code


def test_check_names_a_config_that_cannot_be_read(tmp_path: Path) -> None:
    a_program(tmp_path / "bin")
    (tmp_path / "home" / ".codex").mkdir(parents=True)
    (tmp_path / "home" / ".codex" / "config.toml").write_text("= broken")
    with pytest.raises(AdapterUnusable, match=r"config\.toml"):
        codex_launch.check(a_binding(tmp_path))
