"""The direction of imports and the fences of third-party packages, as the design has them."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "relay_receiver"

MAY_IMPORT = {
    "jobs": set(),
    "wire": {"jobs"},
    "processes": {"wire", "jobs"},
    "client": {"processes", "wire", "jobs"},
    "journal": {"processes", "wire", "jobs"},
    "adapters": {"processes", "wire", "jobs"},
    "receiver": {"client", "journal", "adapters", "processes", "wire", "jobs"},
    "hub": {"wire", "jobs"},
    "cli": {"receiver", "client", "journal", "adapters", "processes", "hub", "wire", "jobs", "testing"},
    "testing": {"receiver", "client", "journal", "adapters", "processes", "wire", "jobs"},
}
FENCES = {
    "sqlalchemy": {"journal", "hub"},
    "alembic": {"journal", "hub"},
    "httpx": {"client"},
    "websockets": {"client"},
    "httptools": {"client"},
    "starlette": {"hub"},
    "uvicorn": {"hub"},
    "jinja2": {"hub"},
    "markupsafe": {"hub"},
    "markdown_it": {"hub"},
    "python_multipart": {"hub"},
    "click": {"cli"},
    "psutil": {"processes"},
    "mcp": {"cli"},
}
STDLIB_ONLY = ("processes/keeper", "processes/launcher", "testing/agent_program", "testing/trial_program")
THEIR_OWN = "relay_receiver.processes.keeper"
"""What keeper and launcher may import beside the standard library: each other."""
NO_IO = {"asyncio", "time", "os", "socket", "subprocess", "random", "secrets", "threading", "pathlib", "io"}


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ("." * node.level + f"{node.module or ''}.{alias.name}" for alias in node.names)


def faults(name: str, source: str) -> list[str]:
    """What a file of the package does against the rules; `name` is its path below the package."""
    tree = ast.parse(source)
    layer = name.split("/", maxsplit=1)[0]
    found = []
    for imported in imports(tree):
        if imported.startswith("."):
            found.append(f"{name}: imports {imported}; say relay_receiver and the whole way")
            continue
        top, *rest = imported.split(".")
        if top == "relay_receiver" and rest and rest[0] in MAY_IMPORT:
            if rest[0] != layer and rest[0] not in MAY_IMPORT.get(layer, set()):
                found.append(f"{name}: {layer} imports {rest[0]}")
        elif top in FENCES and layer not in FENCES[top]:
            found.append(f"{name}: {layer} imports {top}")
        elif top not in {"relay_receiver", *FENCES} and top not in sys.stdlib_module_names:
            found.append(f"{name}: imports {top}, which has no place yet")
        own = imported.startswith(THEIR_OWN)
        if name.startswith(STDLIB_ONLY) and not own and top not in sys.stdlib_module_names:
            found.append(f"{name}: imports {imported}, and is to be of the standard library alone")
        if layer in {"jobs", "wire"} and top in NO_IO:
            found.append(f"{name}: imports {top}, and is to be pure")
    if layer in {"jobs", "wire"} and any(isinstance(n, ast.AsyncFunctionDef) for n in ast.walk(tree)):
        found.append(f"{name}: has an async function, and is to be pure")
    return found


def test_the_package_keeps_its_directions_and_fences() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 50
    found = [f for path in files for f in faults(path.relative_to(PACKAGE).as_posix(), path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("client/x.py", "from relay_receiver.journal import jobs"),
        ("journal/x.py", "import relay_receiver.adapters.base"),
        ("hub/x.py", "from relay_receiver.processes import files"),
        ("processes/x.py", "from relay_receiver.client.rest import Rest"),
        ("wire/x.py", "from relay_receiver import hub"),
        ("receiver/x.py", "import sqlalchemy"),
        ("cli/x.py", "import httpx"),
        ("adapters/x.py", "from psutil import Process"),
        ("cli/x.py", "import jinja2"),
        ("receiver/x.py", "from markdown_it import MarkdownIt"),
        ("client/x.py", "from ..journal import jobs"),
        ("client/x.py", "import requests"),
        ("processes/keeper.py", "import psutil"),
        ("processes/launcher.py", "from relay_receiver.wire import errors"),
        ("processes/keeper_files.py", "from relay_receiver.processes import files"),
        ("jobs/x.py", "import time"),
        ("jobs/x.py", "async def f() -> None: ..."),
        ("wire/x.py", "def f() -> None:\n    import os"),
    ],
)
def test_each_rule_finds_its_fault(name: str, source: str) -> None:
    assert faults(name, source)


def test_every_folder_of_the_package_has_its_place() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(MAY_IMPORT)
