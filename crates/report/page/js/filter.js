// Shows the rows that every choice of the reader allows.
import { lines } from "./model.js";

/** Shows the rows that the choices allow, and says how many they are. */
export function filter() {
  const choice = choices();
  let shown = 0;
  for (const { tr, row } of lines) {
    tr.hidden = !isChosen(row, choice);
    shown += tr.hidden ? 0 : 1;
    const detail = tr.nextElementSibling;
    if (detail?.classList.contains("detail")) detail.hidden = tr.hidden || !detail.dataset.open;
  }
  hideWhatIsEmpty();
  document.getElementById("shown").textContent =
    shown === lines.length ? `${shown} rows` : `${shown} of ${lines.length} rows`;
}

function choices() {
  const value = (id) => document.getElementById(id)?.value ?? "";
  return {
    name: value("variant").trim().toLowerCase(),
    language: value("language"),
    check: value("checks"),
    way: value("way"),
    threads: value("threads"),
  };
}

function isChosen(row, { name, language, check, way, threads }) {
  return (
    `${row.peer} ${row.variant}`.toLowerCase().includes(name) &&
    (!language || row.language === language) &&
    (!check || row.checks.includes(check)) &&
    (!way || row.is_batch === (way === "batch")) &&
    (!threads || String(row.threads ?? 1) === threads)
  );
}

/** A kind of work without rows has no heading either, and says so if it is all there is. */
function hideWhatIsEmpty() {
  for (const body of document.querySelectorAll(".speeds tbody")) {
    body.hidden = ![...body.querySelectorAll("tr[data-row]")].some((tr) => !tr.hidden);
  }
}
