"""What an idle receiver and its hub do: nothing, as nearly as can be."""

import time

from benchmarks import process
from benchmarks.figure import Figure
from benchmarks.world import world

SETTLE_SECONDS = 3.0
"""After the start, before it counts as idle."""


def measure(*, quick: bool) -> list[Figure]:
    seconds = 20.0 if quick else 120.0
    with world() as made:
        receiver = made.start(made.agent("bob"))
        assert made.hub is not None
        hub = made.hub.pid
        time.sleep(SETTLE_SECONDS)
        made.requests()
        cpu = {pid: process.cpu_seconds(pid) for pid in (receiver, hub)}
        fsyncs = len(made.log.fsyncs())
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        share = {pid: (process.cpu_seconds(pid) - before) / took * 100 for pid, before in cpu.items()}
        fsyncs = len(made.log.fsyncs()) - fsyncs
        calls = made.requests()
        rss = process.rss_bytes(receiver) / 2**20
        hub_rss = process.rss_bytes(hub) / 2**20
    hubs = f"hub {hub_rss:.0f}"
    within = f"over {seconds:g} s"
    figures = [
        Figure(
            what="idle: HTTP requests a minute",
            value=round(len(calls) * 60 / took, 1),
            unit="a minute",
            goal=10,
            peer="182",
            note=within,
        ),
        Figure(what="idle: CPU of the receiver", value=share[receiver], unit="%", goal=0.1, peer="0.5", note=within),
        Figure(what="idle: CPU of the hub", value=share[hub], unit="%", goal=0.1, note=within),
        Figure(what="idle: RSS of the receiver", value=rss, unit="MiB", goal=60, peer="75-81", note=hubs),
    ]
    if made.counts_fsyncs:
        figures.append(
            Figure(
                what="idle: fsyncs of receiver and hub",
                value=fsyncs,
                unit="fsyncs",
                goal=0,
                peer="1 a second",
                note=within,
            )
        )
    return figures
