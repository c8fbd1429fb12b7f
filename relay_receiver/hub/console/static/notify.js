// Notifications of this browser, for things that need the person; asked for by a click, never before.

const KEY = "relay-notify";

const can = () => "Notification" in window && isSecureContext;
const on = () => can() && Notification.permission === "granted" && localStorage.getItem(KEY) === "on";

let known = null;

function label(button) {
  button.hidden = !can() || Notification.permission === "denied";
  button.setAttribute("aria-pressed", String(on()));
  button.textContent = on() ? "Notifications are on" : "Notify me here";
}

export function setUp(button, turnedOn) {
  if (!button) return;
  label(button);
  if (on()) turnedOn();
  button.addEventListener("click", async () => {
    if (on()) {
      localStorage.removeItem(KEY);
    } else if ((await Notification.requestPermission()) === "granted") {
      localStorage.setItem(KEY, "on");
      turnedOn();
    }
    label(button);
  });
}

// Tell of what was not there before. Pages of one browser share the tag, so that each thing shows once.
export function tell(things) {
  const before = known;
  known = new Set(things.map((each) => each.id));
  if (before === null || !on()) return;
  for (const each of things) {
    if (before.has(each.id)) continue;
    const shown = new Notification("Relay needs you", { body: each.title, tag: each.id });
    shown.addEventListener("click", () => {
      window.focus();
      location.assign(each.href);
      shown.close();
    });
  }
}
