// Details of a row: its passes, counts, checks, and the command that repeats it.
import { element, grouped, lines } from "./model.js";

/** Gives each row a button that shows the rest of it below. */
export function makeDetails() {
  for (const { tr, row } of lines) {
    const button = element("button", "more");
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    button.append(element("span", ` of ${row.peer} ${row.variant}`, "unseen"));
    button.addEventListener("click", () => toggle(tr, row, button));
    tr.querySelector(".more").append(button);
  }
}

function toggle(tr, row, button) {
  const next = tr.nextElementSibling;
  const detail = next?.classList.contains("detail") ? next : tr.insertAdjacentElement("afterend", make(tr, row));
  const open = !detail.dataset.open;
  if (open) detail.dataset.open = "yes";
  else delete detail.dataset.open;
  detail.hidden = !open;
  button.setAttribute("aria-expanded", String(open));
  button.firstChild.textContent = open ? "less" : "more";
}

function make(tr, row) {
  const detail = element("tr", "", "detail");
  detail.setAttribute("role", "row");
  const cell = element("td");
  cell.setAttribute("role", "cell");
  cell.colSpan = tr.cells.length;
  const list = element("dl");
  for (const [name, value] of entries(row)) {
    const words = element("dd");
    words.append(value);
    list.append(element("dt", name), words);
  }
  cell.append(list);
  detail.append(cell);
  return detail;
}

function entries(row) {
  const passes = row.passes.map((pass) => grouped(pass, row.measure === "ms" ? 2 : 0)).join(", ");
  const counts = Object.entries(row.counts).map(([name, count]) => `${name} ${typeof count === "number" ? grouped(count) : count}`);
  const chunks = row.chunks;
  const all = [
    ["version", row.version],
    [`passes, ${row.measure}`, passes],
    ["checks", row.checks.join(", ") || "none"],
    ["counts", counts.join(", ")],
    ["parts of a pass, ns", chunks && `median ${grouped(chunks.p50_ns)}, 99 of 100 ${grouped(chunks.p99_ns)}, slowest ${grouped(chunks.max_ns)}`],
    ["note", row.note],
  ];
  return [...all.filter(([, value]) => value), ["reproduce this row", command(row)]];
}

function command(row) {
  const words = element("span");
  const code = element("code", row.command, "command");
  const copy = element("button", "copy", "copy");
  copy.type = "button";
  copy.append(element("span", ` the command for ${row.peer} ${row.variant}`, "unseen"));
  copy.addEventListener("click", () => copyText(code, copy));
  words.append(code, copy);
  return words;
}

/** Where the clipboard is not given, the text is selected, so that a key copies it. */
async function copyText(code, button) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.firstChild.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(code);
    button.firstChild.textContent = "selected";
  }
}
