// Details of a row: its passes, counts, checks, and the command that repeats it.
import { element, figure, grouped, model } from "./model.js";
import { baselineOf } from "./choices.js";

/** The button that opens and closes the details of a row; `show` makes the rows again. */
export function detailsButton(row, show) {
  const button = element("button", row.isOpen ? "less" : "more");
  button.type = "button";
  button.setAttribute("aria-expanded", String(Boolean(row.isOpen)));
  button.append(element("span", ` of ${row.owner.name} ${row.variant}`, "unseen"));
  button.addEventListener("click", () => {
    row.isOpen = !row.isOpen;
    show();
  });
  return button;
}

/** The row of the table that holds the details. */
export function detail(row, columns) {
  const line = element("tr", "", "detail");
  const cell = element("td");
  cell.colSpan = columns;
  const list = element("dl");
  for (const [name, value] of entries(row)) {
    const words = element("dd");
    words.append(value);
    list.append(element("dt", name), words);
  }
  cell.append(list);
  line.append(cell);
  return line;
}

function entries(row) {
  const { chunks, work, task } = row;
  const all = [
    ["version", `${row.owner.language} ${row.owner.version}`],
    ["units in a call", row.batch],
    [`passes, ${work.measure}`, row.values.map((value) => figure(row, value)).join(", ")],
    ["MB/s", row.mbs && grouped(row.mbs)],
    ["checks", row.checked.join(", ") || "none"],
    ["counts", task.texts[row.counts]],
    ["parts, ms", row.stages?.map(([name, ms]) => `${name} ${grouped(ms, 2)}`).join(", ")],
    ["parts of a pass, ns", chunks && `median ${grouped(chunks[0])}, 99 of 100 ${grouped(chunks[1])}, slowest ${grouped(chunks[2])}`],
    ["allocations a unit", row.allocations === undefined ? null : String(row.allocations)],
    ["note", task.texts[row.note]],
  ];
  return [...all.filter(([, value]) => value), ["reproduce this row", command(row)]];
}

function commandOf(row) {
  const against = baselineOf(row.task, row.group, { baseline: "" })?.owner;
  const peers = [row.owner, against].filter((peer, at) => peer && (at === 0 || peer !== row.owner));
  const [before, after] = model.command;
  return `${before} ${row.task.quoted} --peers ${peers.map((peer) => peer.quoted).join(",")} ${after}`.trim();
}

function command(row) {
  const words = element("span");
  const code = element("code", commandOf(row), "command");
  const copy = element("button", "copy", "copy");
  copy.type = "button";
  copy.append(element("span", ` the command for ${row.owner.name} ${row.variant}`, "unseen"));
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
