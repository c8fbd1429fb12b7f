"""Style sheets and scripts: read once, found by their whole name, so that no address leads to another file."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from relay_receiver.hub.errors import not_found

FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """One file as it is sent."""

    content: bytes
    type: str
    tag: str
    """Of its content: part of its address, so that a changed file is another one."""


def load() -> dict[str, Asset]:
    """All assets by name."""
    found = {}
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in _TYPES:
            content = path.read_bytes()
            tag = hashlib.sha256(content).hexdigest()[:16]
            found[path.name] = Asset(content=content, type=_TYPES[path.suffix], tag=tag)
    return found


async def serve(request: Request) -> Response:
    """An asset; for good where its address names its content, else asked for again each time."""
    assets: dict[str, Asset] = request.app.state.console.assets
    asset = assets.get(request.path_params["name"])
    if asset is None:
        raise not_found("file")
    tag = f'"{asset.tag}"'
    kept = _FOREVER if request.query_params.get("v") == asset.tag else "no-cache"
    headers = {"cache-control": kept, "etag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.type, headers=headers)
