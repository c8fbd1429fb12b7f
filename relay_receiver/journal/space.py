"""The space that the journal takes on the disk, and giving back what pruning freed."""

from sqlalchemy import Connection

GIVE_BACK_FROM = 1024
"""Free pages (of 4 KiB) from which they are given back; fewer are soon used again."""
GIVE_BACK_PAGES = 512
"""Pages in one call: the WAL grows by at most as much."""


def whole_bytes(conn: Connection) -> int:
    """What the file takes on the disk, in bytes."""
    return _pragma(conn, "page_count") * _pragma(conn, "page_size")


def used_bytes(conn: Connection) -> int:
    """What the journal's rows and indexes take on the disk, in bytes; pages that pruning freed are not counted."""
    return (_pragma(conn, "page_count") - _pragma(conn, "freelist_count")) * _pragma(conn, "page_size")


def give_back(conn: Connection) -> int:
    """Shrink the file where more than half of it is free; how many pages went. Call again until it is 0."""
    pages, free = _pragma(conn, "page_count"), _pragma(conn, "freelist_count")
    if free < GIVE_BACK_FROM or free * 2 < pages:
        return 0
    for _ in range(min(free, GIVE_BACK_PAGES)):
        conn.exec_driver_sql("PRAGMA incremental_vacuum(1)")  # the driver takes one step of it, whatever the number
    return pages - _pragma(conn, "page_count")


def _pragma(conn: Connection, name: str) -> int:
    return int(conn.exec_driver_sql(f"PRAGMA {name}").scalar_one())
