"""The receiver's log: one JSON object a line, rotated, readable by people through `relay receiver logs`."""

import json
import logging
import logging.handlers
import os
import re
import sys
import time
from io import TextIOWrapper
from pathlib import Path

from relay_receiver.processes import files

BYTES = 5 * 1024 * 1024
"""Size of one log file before it is rotated."""
KEPT = 3
"""Rotated files that are kept."""

_HIDDEN = re.compile(
    "[\x7f-\x9f\xad\u0600-\u0605\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
"""What a terminal takes for an order, or shows in another place than it stands; JSON leaves it as it is."""
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _HIDDEN.sub(_escaped, json.dumps(line, ensure_ascii=False, default=str))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


class _PrivateRotating(logging.handlers.RotatingFileHandler):
    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="replace")


def open_log(path: Path, *, foreground: bool) -> logging.Logger:
    """The logger of a receiver process, writing to `path` (0600), and to stderr in the foreground."""
    files.private_dir(path.parent)
    logger = logging.getLogger("relay_receiver")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handlers: list[logging.Handler] = [_PrivateRotating(path, maxBytes=BYTES, backupCount=KEPT)]
    if foreground:
        handlers.append(logging.StreamHandler(sys.stderr))
    for handler in handlers:
        handler.setFormatter(_Line())
    for old in logger.handlers[:]:
        logger.removeHandler(old)
        old.close()
    for handler in handlers:
        logger.addHandler(handler)
    return logger
