// Putting what the server rendered anew into the page, without taking away what somebody is at.

import { localize } from "./times.js";

const TYPED = "input, textarea, select";
const shown = new WeakMap();

function changed(field) {
  if (field.type === "hidden") return false;
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  if (field.tagName === "SELECT") return [...field.options].some((option) => option.selected !== option.defaultSelected);
  return field.value !== field.defaultValue;
}

// A select of which no option is marked shows its first one: that is not a choice of the reader.
function settled(select) {
  return ![...select.options].some((option) => option.defaultSelected) && select.selectedIndex === 0;
}

function inUse(element) {
  const active = document.activeElement;
  if (active && element.contains(active) && active.matches(TYPED)) return true;
  return [...element.querySelectorAll(TYPED)].some(
    (field) => changed(field) && !(field.tagName === "SELECT" && settled(field)),
  );
}

function opened(element) {
  return new Set([...element.querySelectorAll("details[open][id]")].map((each) => each.id));
}

function replace(element, made) {
  const focused = element.contains(document.activeElement) ? document.activeElement.id : "";
  for (const id of opened(element)) made.querySelector(`details#${CSS.escape(id)}`)?.setAttribute("open", "");
  if (element.matches("details[open]")) made.setAttribute("open", "");
  localize(made);
  element.replaceWith(made);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

// Make `element` show what `made` does, child by child where they have ids. False where something was in use.
export function swap(element, made) {
  const source = made.outerHTML;
  if (shown.get(element) === source) return true;
  const kept = [...made.children];
  if (kept.length && kept.every((child) => child.id)) {
    const whole = children(element, kept);
    if (whole) shown.set(element, source);
    return whole;
  }
  if (inUse(element)) return false;
  replace(element, made);
  shown.set(made, source);
  return true;
}

function children(element, wanted) {
  let whole = true;
  const ids = new Set(wanted.map((child) => child.id));
  for (const child of [...element.children]) {
    if (ids.has(child.id)) continue;
    if (inUse(child)) whole = false;
    else child.remove();
  }
  let before = null;
  for (const made of wanted) {
    const have = [...element.children].find((child) => child.id === made.id);
    if (!have) {
      localize(made);
      shown.set(made, made.outerHTML);
      if (before) before.after(made);
      else element.prepend(made);
      before = made;
      continue;
    }
    const id = have.id;
    if (!swap(have, made)) whole = false;
    before = document.getElementById(id);
  }
  return whole;
}

export async function page(url, signal) {
  const answer = await fetch(url, { headers: { accept: "text/html" }, cache: "no-store", signal });
  if (answer.status === 401) signIn();
  if (!answer.ok) return null;
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

export function signIn() {
  location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
}
