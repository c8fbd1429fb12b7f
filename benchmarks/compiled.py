"""The C programs of the benchmarks, compiled where there is gcc."""

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PYTHON_ANSWER = 'import sys; sys.stdin.read(); print(\'{"text": "done"}\')'


def answer(folder: Path) -> tuple[str, ...]:
    """The program that answers at once."""
    made = _compiled(folder, "answer")
    return (str(made),) if made else (sys.executable, "-I", "-S", "-c", PYTHON_ANSWER)


def fsync_counter(folder: Path) -> Path | None:
    """The library that logs fsyncs; None where it cannot be made."""
    if not sys.platform.startswith("linux"):
        return None
    return _compiled(folder, "fsyncs", "-shared", "-fPIC", "-ldl")


def _compiled(folder: Path, name: str, *options: str) -> Path | None:
    gcc = shutil.which("gcc") or shutil.which("cc")
    if gcc is None:
        return None
    made = folder / (f"{name}.so" if "-shared" in options else name)
    if not made.exists():
        subprocess.run([gcc, "-O2", "-o", made, HERE / f"{name}.c", *options], check=True)
    return made
