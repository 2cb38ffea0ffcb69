// Starts the page: choices, sortable headings, details.
import { makeDetails } from "./details.js";
import { filter } from "./filter.js";
import { holdAgainst } from "./baseline.js";
import { makeSortable } from "./sort.js";

const tools = document.getElementById("tools");
makeSortable();
makeDetails();
tools.hidden = false;
tools.addEventListener("input", choose);
tools.addEventListener("submit", (event) => event.preventDefault());
// The fields have their first values only after the event.
tools.addEventListener("reset", () => setTimeout(choose));
choose();

function choose() {
  holdAgainst(document.getElementById("baseline").value);
  filter();
}
