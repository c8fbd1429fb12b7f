// Waiting for the hub to say that something changed: one request that it holds, made again as soon as it is answered.

import { signIn } from "./swap.js";

const PATIENCE_MS = 40_000;
const BREATH_MS = 150;
const LADDER_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000];

const pause = (ms, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });

// Calls `told(events)` for each batch, `lost()` where events may be missing, `state(word)` when the connection changes.
// `allowed()` resolves when this page may wait: a page that nobody sees gives its place up.
export async function wait({ cursor, told, lost, state, allowed }) {
  let failures = 0;
  for (;;) {
    const stop = await allowed();
    try {
      const query = cursor ? `wait=25&cursor=${encodeURIComponent(cursor)}` : "wait=1";
      const signal = AbortSignal.any([stop, AbortSignal.timeout(PATIENCE_MS)]);
      const answer = await fetch(`/updates?${query}`, {
        headers: { accept: "application/json" },
        cache: "no-store",
        signal,
      });
      if (answer.status === 401) return signIn();
      if (answer.status === 409) {
        cursor = null;
        continue;
      }
      if (!answer.ok) throw new Error(`${answer.status}`);
      const batch = await answer.json();
      if (!cursor) lost();
      cursor = batch.cursor;
      if (failures > 1) state("");
      failures = 0;
      if (batch.events.length) {
        told(batch.events);
        await pause(BREATH_MS, stop);
      }
    } catch (error) {
      if (stop.aborted) continue;
      failures += 1;
      if (failures > 1) state("Reconnecting");
      const rung = LADDER_MS[Math.min(failures, LADDER_MS.length) - 1];
      await pause(rung * (0.75 + Math.random() / 2), stop);
    }
  }
}
