// Times as the server wrote them are in UTC; shown are those of the reader.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

export function localize(root) {
  const now = new Date();
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const days = Math.abs(now - at) / 86_400_000;
    const today = days < 1 && now.getDate() === at.getDate();
    const year = days > 300 ? ` ${at.getFullYear()}` : "";
    element.textContent = today ? clock.format(at) : `${day.format(at)}${year}, ${clock.format(at)}`;
    element.title = whole.format(at);
  }
}
