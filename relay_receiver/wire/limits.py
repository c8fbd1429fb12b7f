"""The limits of protocol 1. Sizes in bytes, times in seconds."""

PROTOCOL = 1

CONTENT_BYTES = 64 * 1024
ATTACHMENT_BYTES = 25 * 1024 * 1024
BODY_BYTES = 1024 * 1024
JSON_DEPTH = 32
NAME_CHARS = 64

LEASE_SECONDS = 30
SILENT_SECONDS = 15
"""A holder renews its lease before this; one that did not is silent, though its lease still counts."""
STANDBY_SECONDS = 10
"""A holder that stands by asks for the lease at least this often."""
DECLARATION_SECONDS = 90
ENROLMENT_SECONDS = 600
REQUEST_EXPIRY_SECONDS = 7 * 24 * 3600
ASK_EXPIRY_SECONDS = 24 * 3600
"""A request to people that names no expiry."""
ASK_MOST_SECONDS = 30 * 24 * 3600
JOB_WAIT_SECONDS = 600
"""Inside a job `messages wait` ends after this time at the latest."""

WRITES_PER_MINUTE = 300
RUN_CALLS_PER_SECOND = 100
ENROLMENTS_PER_MINUTE = 10
SIGN_INS_PER_MINUTE = 10
"""Failed ones, an address."""
SOCKETS_PER_MEMBER = 4
"""A member and channel."""

INBOX_EVENTS = 200
PAGE_MESSAGES = 200
STATE_MESSAGES = 50
"""Latest messages of a channel in `GET /state`."""

POLL_SECONDS = (1, 30)
HELLO_SECONDS = 10
CURSOR_SECONDS = 25
PING_SECONDS = 20
