from enum import IntEnum


class How(IntEnum):
    """How a receiver is to stop; a stronger wish replaces a weaker one."""

    DETACH = 1
    """Leave the job with its keeper: another process attaches again."""
    GRACE = 2
    NOW = 3
