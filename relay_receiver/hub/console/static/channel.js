// A channel while it is open: new messages below, receipts that move, a form that sends without leaving the page.

import { localize } from "./times.js";
import { signIn, swap } from "./swap.js";

const list = document.getElementById("messages");
const compose = document.getElementById("compose");
const tail = list.dataset.tail;
const channel = list.dataset.channel;

async function pieces(url) {
  const answer = await fetch(url, { headers: { accept: "text/html" }, cache: "no-store" });
  if (answer.status === 401) signIn();
  if (!answer.ok) throw new Error(`${answer.status}`);
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  return [...holder.content.children];
}

async function append() {
  for (;;) {
    const made = await pieces(`${tail}/messages?after=${list.dataset.last}`);
    if (!made.length) return;
    for (const item of made) {
      list.dataset.last = item.dataset.event;
      if (document.getElementById(item.id)) continue;
      localize(item);
      list.append(item);
      say(item);
    }
    document.getElementById("empty")?.remove();
  }
}

function say(item) {
  const who = item.querySelector(".message__who, .unseen")?.textContent.trim() ?? "";
  const text = item.querySelector(".prose")?.textContent.trim().slice(0, 120) ?? "";
  document.getElementById("announce").textContent = `${who}: ${text}`;
}

async function receipts() {
  const open = [...list.querySelectorAll("[data-receipt][data-open]")].map((each) => each.dataset.receipt);
  if (!open.length) return;
  const url = `/channels/${encodeURIComponent(channel)}/receipts?ids=${open.slice(-100).join(",")}`;
  for (const made of await pieces(url)) {
    const have = document.getElementById(made.id);
    if (have) swap(have, made);
  }
}

let running = Promise.resolve();

// One after another: what came meanwhile is fetched again, nothing twice.
function renew() {
  running = running
    .then(() => (tail ? append() : null))
    .then(receipts)
    .catch(() => {});
}

document.addEventListener("relay:lost", renew);
document.addEventListener("relay:events", (event) => {
  if (event.detail.some((each) => !each.channel || each.channel === channel)) renew();
});

function fresh() {
  const letters = crypto.getRandomValues(new Uint8Array(18));
  return `console:${btoa(String.fromCharCode(...letters)).replace(/[+/=]/g, "-")}`;
}

const said = document.getElementById("compose-said");

function tell(text) {
  said.replaceChildren(Object.assign(document.createElement("p"), { className: "notice notice--bad", textContent: text }));
}

async function send(button) {
  const asking = button.id === "compose-wakes";
  const body = new FormData(compose);
  if (asking) body.delete("files");
  const url = button.getAttribute("formaction") ?? compose.getAttribute("action");
  const answer = await fetch(url, { method: "POST", body, headers: { accept: "text/html" }, redirect: "manual" });
  if (answer.type === "opaqueredirect") {
    said.replaceChildren();
    compose.reset();
    for (const field of compose.querySelectorAll("textarea, [name=reply], .compose__reply")) {
      if (field.id === "content") field.value = field.defaultValue = "";
      else field.remove();
    }
    for (const kept of compose.querySelectorAll("[name=attached]")) kept.closest("label").remove();
    compose.elements.operation.value = fresh();
    document.getElementById("log").scrollTop = 0;
    renew();
    return;
  }
  if (answer.status === 401) signIn();
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.getElementById("compose-said");
  if (found) said.replaceChildren(...document.adoptNode(found).children);
  else tell(page.querySelector("main h1 + p")?.textContent ?? "That did not work; try again.");
}

compose.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.submitter ?? document.getElementById("compose-send");
  if (compose.dataset.busy) return;
  compose.dataset.busy = "1";
  button.setAttribute("aria-disabled", "true");
  try {
    await send(button);
  } catch {
    tell("The hub did not answer; what you wrote is still here. Send it again: it arrives once.");
  } finally {
    delete compose.dataset.busy;
    button.removeAttribute("aria-disabled");
  }
});

document.getElementById("content").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) {
    event.preventDefault();
    compose.requestSubmit(document.getElementById("compose-send"));
  }
});
