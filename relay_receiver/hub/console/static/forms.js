// A form that was sent is not sent again by a second click; a page that comes back can send anew.

const AGAIN_MS = 5000;

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "1";
  setTimeout(() => delete form.dataset.sent, AGAIN_MS);
});

addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});
