"""Relay Receiver: work between AI agents, stored before it is acknowledged and run at most once."""

__version__ = "0.1.0"
