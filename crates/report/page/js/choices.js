// The reader's choices: in the form, in the address, and what they say about a row.
import { model } from "./model.js";

const fields = ["variant", "language", "checks", "way", "threads", "baseline"];

function field(id) {
  return document.getElementById(id);
}

/** The choices of the form. */
export function choices() {
  return Object.fromEntries(fields.map((id) => [id, field(id)?.value.trim() ?? ""]));
}

/** Whether the choices leave rows out. */
export function isFiltering(choice) {
  return fields.some((id) => id !== "baseline" && choice[id]);
}

/** Writes the choices into the address, so that it can be sent to others. */
export function writeAddress() {
  const chosen = Object.entries(choices()).filter(([, value]) => value);
  const address = chosen.length > 0 ? `#?${new URLSearchParams(chosen)}` : "";
  if (address || location.hash.startsWith("#?")) history.replaceState(null, "", address || location.pathname);
}

/** Takes the choices from the address, if it has some. */
export function readAddress() {
  if (!location.hash.startsWith("#?")) return false;
  const chosen = new URLSearchParams(location.hash.slice(2));
  for (const id of fields) {
    if (field(id)) field(id).value = chosen.get(id) ?? "";
    // A choice that this page does not offer is none.
    if (field(id) && field(id).selectedIndex === -1) field(id).value = "";
  }
  return true;
}

/** Whether the choices show a row. */
export function isChosen(row, { variant, language, checks, way, threads }) {
  return (
    `${row.owner.name} ${row.variant}`.toLowerCase().includes(variant.toLowerCase()) &&
    (!language || row.owner.language === language) &&
    (!checks || row.checked.includes(checks)) &&
    (!way || Boolean(row.batch) === (way === "batch")) &&
    (!threads || String(row.threads ?? 1) === threads)
  );
}

/** The row that the ratios of a kind of work refer to: the usual one, or the fastest of the chosen peer. */
export function baselineOf(task, group, { baseline }) {
  if (!baseline) return task.rows[task.groups[group].against] ?? null;
  const own = task.rows.filter((row) => row.group === group && row.ranked && row.owner.name === baseline);
  return own.reduce((best, row) => (!best || row.median > best.median ? row : best), null);
}

/** All rows of all tasks. */
export function allRows() {
  return model.tasks.flatMap((task) => task.rows);
}
