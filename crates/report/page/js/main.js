// Starts the page: choices, the tables behind headings, and links into closed parts.
import { keepRoles, model } from "./model.js";
import { allRows, choices, isChosen, isFiltering, readAddress, writeAddress } from "./choices.js";
import { fillTables, showRowsWhenOpened } from "./rows.js";
import { showTablesWhenOpened } from "./tables.js";

const tools = document.getElementById("tools");
document.querySelectorAll("table.speeds").forEach(keepRoles);
showRowsWhenOpened(model.tasks);
showTablesWhenOpened();
tools.hidden = false;
tools.addEventListener("input", choose);
tools.addEventListener("submit", (event) => event.preventDefault());
// The fields have their first values only after the event.
tools.addEventListener("reset", () => setTimeout(choose));
window.addEventListener("hashchange", followAddress);
followAddress();

function choose() {
  writeAddress();
  show();
}

/** Shows the choices of the address, or opens the part that it names. */
function followAddress() {
  readAddress();
  const named = location.hash.startsWith("#?") ? null : document.getElementById(location.hash.slice(1));
  if (named?.tagName === "DETAILS") named.open = true;
  show();
}

function show() {
  const choice = choices();
  fillTables(isFiltering(choice) || choice.baseline !== "");
  const rows = allRows();
  const shown = rows.filter((row) => isChosen(row, choice)).length;
  document.getElementById("shown").textContent =
    shown === rows.length ? `${shown} rows` : `${shown} of ${rows.length} rows`;
}
