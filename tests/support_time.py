"""The one unit of time of the tests. Nothing is asserted about how long something takes, only that it comes about."""

import os

WITHIN = float(os.environ.get("TESTS_WITHIN") or 60.0)
"""Seconds after which a test that waits for something has failed.

Far above what a busy machine needs, and above what the product itself takes to get over a fault: a lease lasts 30 s,
an idle socket says its cursor every 25 s.
"""
ENDLESS = 100 * WITHIN
"""Seconds that something lasts which a test never waits for: what did wait for it shows as a test that failed."""
