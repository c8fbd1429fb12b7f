// Keeps a page true while it is open. Without it every page works; it only has to be loaded again.
//
// An element with an id and `data-live="request receiver"` is taken anew from the same address whenever an event of
// these kinds arrives; `data-channel` narrows that to the events of one channel.

import { localize } from "./times.js";
import { page, swap } from "./swap.js";
import { wait } from "./poll.js";
import { allowed, stayInBackground } from "./seen.js";
import { setUp, tell } from "./notify.js";

const KINDS = { needs: ["request", "receiver"] };
const GATHER_MS = 120;
const MOVED_MS = 700;
const COUNT = /^\(\d+\) /;

const kind = (event) => event.type.split(".")[0];

function concerns(element, events) {
  const kinds = element.dataset.live.split(/\s+/).flatMap((word) => KINDS[word] ?? [word]);
  const channel = element.dataset.channel;
  return events.some((event) => kinds.includes(kind(event)) && (!channel || !event.channel || event.channel === channel));
}

// Runs `work` with all that came while it ran before, one run at a time.
function gathered(work) {
  let pending = [];
  let running = false;
  return async (events) => {
    pending.push(...events);
    if (running) return;
    running = true;
    try {
      while (pending.length) {
        await new Promise((done) => setTimeout(done, GATHER_MS));
        const batch = pending;
        pending = [];
        await work(batch);
      }
    } finally {
      running = false;
    }
  };
}

let stale = false;

async function renew(elements) {
  if (!elements.length) return;
  const fresh = await page(location.href).catch(() => null);
  stale = fresh === null;
  if (!fresh) return;
  const before = buttons();
  for (const element of elements) {
    const made = fresh.getElementById(element.id);
    if (made && !swap(element, document.adoptNode(made))) stale = true;
  }
  const after = buttons();
  if ([...before].some((each) => !after.has(each))) hold();
  document.title = (document.title.match(COUNT)?.[0] ?? "") + fresh.title;
}

// Where each button is that decides something.
function buttons() {
  const place = (button) => {
    const { left, top } = button.getBoundingClientRect();
    return [button.closest("[id]").id, button.value, Math.round(left), Math.round(top)].join(" ");
  };
  return new Set([...document.querySelectorAll("[data-live] form button")].map(place));
}

let holding;

// No press counts that was meant for what stood here a moment ago.
function hold() {
  document.body.dataset.moved = "";
  clearTimeout(holding);
  holding = setTimeout(() => delete document.body.dataset.moved, MOVED_MS);
}

const live = () => [...document.querySelectorAll("[data-live][id]")];

async function needs() {
  const answer = await fetch("/needs/summary", { headers: { accept: "application/json" }, cache: "no-store" });
  if (!answer.ok) return;
  const { count, things } = await answer.json();
  for (const element of document.querySelectorAll("[data-needs]")) {
    if (element.dataset.needs === String(count)) continue;
    element.dataset.needs = count;
    element.replaceChildren();
    if (count) {
      const unseen = Object.assign(document.createElement("span"), { className: "unseen", textContent: " waiting" });
      element.append(String(count), unseen);
    }
  }
  document.title = document.title.replace(COUNT, "");
  if (count) document.title = `(${count}) ${document.title}`;
  tell(things);
}

const told = gathered(async (events) => {
  document.dispatchEvent(new CustomEvent("relay:events", { detail: events }));
  if (events.some((event) => KINDS.needs.includes(kind(event)))) await needs().catch(() => {});
  await renew(live().filter((element) => concerns(element, events)));
});

document.addEventListener("focusout", () => {
  if (stale) setTimeout(() => renew(live()), 0);
});

localize(document);
setUp(document.getElementById("notify"), stayInBackground);
needs().catch(() => {});
wait({
  cursor: document.body.dataset.cursor,
  told,
  lost: () => {
    document.dispatchEvent(new CustomEvent("relay:lost"));
    void renew(live());
    needs().catch(() => {});
  },
  state: (word) => (document.getElementById("live-state").textContent = word),
  allowed,
});
