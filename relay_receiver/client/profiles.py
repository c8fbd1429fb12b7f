"""Profiles: which member of which workspace this machine can act as. Secrets stay in files of mode 0600."""

import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from relay_receiver.processes import files, paths
from relay_receiver.wire.errors import RelayError

FACTS = "profile.json"
SECRETS = "secrets.json"
PENDING = "enrolment.json"
DEFAULT = "default"
CHOICE = "RELAY_PROFILE"
JOB = "RELAY_JOB"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_JOIN = "relay connect URL#CODE --name NAME"


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """One member of one workspace. The secrets are not in it."""

    name: str
    url: str
    workspace: str
    workspace_name: str
    agent: str
    agent_name: str
    role: str
    channels: tuple[tuple[str, str], ...] = ()

    @property
    def directory(self) -> Path:
        """Where its files are."""
        return paths.profile_dir(self.name)

    def token(self) -> str:
        """The membership token, from its file."""
        return secrets_of(self.name).token

    def identity(self) -> str:
        """The identity secret, from its file."""
        return secrets_of(self.name).identity


@dataclass(frozen=True, kw_only=True, slots=True)
class Secrets:
    """What a profile proves itself with, and to which hub it may be sent."""

    url: str
    token: str = field(repr=False)
    identity: str = field(repr=False)


def save(profile: Profile, *, token: str | None = None, identity: str | None = None) -> None:
    """Store a profile; the secrets first, so that a profile never exists without them. None keeps what is stored."""
    directory = files.private_dir(_directory(profile.name))
    if token is not None:
        secrets = Secrets(url=profile.url, token=token, identity=identity or "")
        files.write_private(directory / SECRETS, _encode(asdict(secrets)))
    facts = asdict(profile)
    del facts["name"]
    files.write_private(directory / FACTS, _encode(facts))


def save_pending(name: str, secrets: Secrets) -> None:
    """Store the secrets of an enrolment before it is sent."""
    files.write_private(files.private_dir(_directory(name)) / PENDING, _encode(asdict(secrets)))


def pending(name: str) -> Secrets | None:
    """The secrets of an enrolment whose answer never came."""
    path = _directory(name) / PENDING
    try:
        return Secrets(**_texts(_read(path), "url", "token", "identity"))
    except FileNotFoundError:
        return None
    except (KeyError, TypeError) as error:
        raise _damaged(path) from error


def forget_pending(name: str) -> None:
    """The enrolment is done."""
    (_directory(name) / PENDING).unlink(missing_ok=True)


def secrets_of(name: str) -> Secrets:
    """The stored secrets of a profile.

    Raises:
        RelayError: there are none, or the file is damaged.
    """
    path = _directory(name) / SECRETS
    try:
        return Secrets(**_texts(_read(path), "url", "token", "identity"))
    except FileNotFoundError as error:
        raise RelayError(f"The profile {name} has no credential.", code="no_profile", hint=_JOIN) from error
    except (KeyError, TypeError) as error:
        raise _damaged(path) from error


def load(name: str) -> Profile:
    """The profile of that name.

    Raises:
        RelayError: there is none (`no_profile`), or its file is damaged (`bad_profile`).
    """
    path = _directory(name) / FACTS
    try:
        facts = _read(path)
        channels = tuple((str(each), str(called)) for each, called in facts["channels"])
        return Profile(name=name, channels=channels, **_texts(facts, *_FACTS))
    except FileNotFoundError as error:
        known = names()
        sentence = (
            f"There is no profile {name}; there are: {', '.join(known)}." if known else "There is no profile yet."
        )
        raise RelayError(sentence, code="no_profile", hint="relay profile list" if known else _JOIN) from error
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path) from error


def names() -> list[str]:
    """The names of all profiles, sorted."""
    try:
        found = [each.name for each in paths.profiles_dir().iterdir() if (each / FACTS).is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(name for name in found if _NAME.fullmatch(name))


def resolve(name: str | None = None) -> Profile:
    """The profile that is meant: the given one, else `RELAY_PROFILE`, else the only one, else `default`."""
    said = name or os.environ.get(CHOICE)
    if said:
        return load(said)
    known = names()
    if len(known) == 1:
        return load(known[0])
    if known and DEFAULT not in known:
        raise RelayError(
            f"Which profile? There are {len(known)}: {', '.join(known)}.",
            code="no_profile",
            hint=f"Say --profile NAME, or set {CHOICE}.",
        )
    return load(DEFAULT)


def remove(name: str) -> None:
    """Forget a profile and its secrets; what else is in its directory (receivers' state) stays."""
    directory = _directory(name)
    for each in (FACTS, SECRETS, PENDING):
        (directory / each).unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobCredential:
    """What one job may use `relay` with; it ends with the run."""

    url: str
    workspace: str
    agent: str
    agent_name: str
    channel: str
    job: str
    message: str
    token: str = field(repr=False)
    expires: Any = None

    @classmethod
    def from_environment(cls) -> Self | None:
        """The credential in the file that `RELAY_JOB` names, read anew each time; None outside a job.

        Raises:
            RelayError: this is a job and its credential is not there: it was given none, or it is over.
        """
        name = os.environ.get(JOB)
        if name is None:
            return None
        path = Path(name)
        try:
            said = _read(path)
            return cls(agent_name=str(said["agentName"]), expires=said.get("expires"), **_texts(said, *_GRANT))
        except FileNotFoundError as error:
            raise RelayError("This job has no credential (any more).", code="not_connected") from error
        except (KeyError, TypeError) as error:
            raise _damaged(path) from error

    def write(self, path: Path) -> None:
        """Put it into a private file, at once whole.

        It need not reach the disk: no power cut leaves a job that could still use it.
        """
        said = asdict(self)
        said["agentName"] = said.pop("agent_name")
        files.write_private(path, _encode(said), durable=False)


_FACTS = ("url", "workspace", "workspace_name", "agent", "agent_name", "role")
_GRANT = ("url", "workspace", "agent", "channel", "job", "message", "token")


def _directory(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise RelayError(
            "The name of a profile is 1 to 64 letters, digits, dots, dashes and underlines.",
            code="usage",
            hint="Say --profile NAME; relay profile list shows them.",
        )
    return paths.profile_dir(name)


def _encode(value: object) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"


def _read(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(files.read_private(path))
    except (ValueError, RecursionError) as error:
        raise _damaged(path) from error
    if not isinstance(said, dict):
        raise _damaged(path)
    return said


def _texts(said: dict[str, Any], *keys: str) -> dict[str, str]:
    """These fields of a stored object; a newer version's others are left alone."""
    for key in keys:
        if not isinstance(said[key], str):
            raise TypeError(key)
    return {key: said[key] for key in keys}


def _damaged(path: Path) -> RelayError:
    return RelayError(
        f"The file {path} is damaged.",
        code="bad_profile",
        hint="Restore it from a backup, or move it away and join again.",
    )
