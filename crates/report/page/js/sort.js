// Sorts the rows of each group by a column chosen by its heading.
import { lines } from "./model.js";

/** Makes a button of each heading that its rows can be sorted by. */
export function makeSortable() {
  for (const heading of document.querySelectorAll("th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    heading.setAttribute("aria-sort", heading.dataset.sort === "speed" ? usualOrder(heading) : "none");
    button.addEventListener("click", () => sortBy(heading));
  }
}

/** Rows come the fastest first: of times, the shortest. */
function usualOrder(heading) {
  return heading.textContent === "ms" ? "ascending" : "descending";
}

function sortBy(heading) {
  const table = heading.closest("table");
  const before = heading.getAttribute("aria-sort");
  const first = ["peer", "variant", "spread"].includes(heading.dataset.sort) ? "ascending" : "descending";
  const order = before === "none" ? first : before === "ascending" ? "descending" : "ascending";
  for (const other of table.querySelectorAll("th[aria-sort]")) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", order);
  for (const body of table.tBodies) sortBody(body, heading.dataset.sort, order === "ascending" ? 1 : -1);
}

/** Rows without a number stay behind those that have one, whatever the order. */
function sortBody(body, column, sign) {
  const known = new Map(lines.map((line) => [line.tr, line.row]));
  const rows = [...body.querySelectorAll("tr[data-row]")];
  const key = new Map(rows.map((tr) => [tr, sortKey(known.get(tr), tr, column)]));
  rows.sort((a, b) => {
    const [x, y] = [key.get(a), key.get(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
  });
  for (const tr of rows) {
    const detail = tr.nextElementSibling?.classList.contains("detail") ? tr.nextElementSibling : null;
    body.append(tr);
    if (detail) body.append(detail);
  }
}

function sortKey(row, tr, column) {
  switch (column) {
    case "speed":
      return row.rate ? (row.measure === "ms" ? 1 / row.rate.median : row.rate.median) : null;
    case "spread":
      return row.rate ? row.rate.max / row.rate.min : null;
    case "ratio":
      return tr.dataset.ratio ? Number(tr.dataset.ratio) : Number.parseFloat(tr.querySelector(".ratio").textContent) || null;
    case "checks":
      return row.checks.length;
    case "variant":
      return row.variant;
    default:
      return row.peer;
  }
}
