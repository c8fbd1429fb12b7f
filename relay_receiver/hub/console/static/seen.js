// Which pages wait at the hub: those that somebody sees, and of the others one, where notifications are on.
// A browser opens few connections to one hub; pages in the background would take them all.

let gone = new AbortController();
let background = false;
const waiting = new Set();

function settle() {
  const may = document.visibilityState === "visible" || background;
  if (!may) {
    gone.abort();
    return;
  }
  if (gone.signal.aborted) gone = new AbortController();
  for (const each of waiting) each(gone.signal);
  waiting.clear();
}

document.addEventListener("visibilitychange", settle);

// Resolves with a signal that ends the wait, once this page may wait.
export function allowed() {
  if (!gone.signal.aborted) return Promise.resolve(gone.signal);
  return new Promise((done) => waiting.add(done));
}

// Let one page of this browser go on in the background.
export function stayInBackground() {
  if (!navigator.locks) return;
  navigator.locks.request("relay-background", () => {
    background = true;
    settle();
    return new Promise(() => {});
  });
}

settle();
