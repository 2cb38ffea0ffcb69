// The data of the page, and what is computed from it.

/** The results, as the page holds them. */
export const model = JSON.parse(document.getElementById("data").textContent);

for (const task of model.tasks) {
  task.rows = task.rows.map(named);
  task.rows.forEach((row, at) => prepare(task, row, at));
}

/** A row by names; the page holds it as a list. */
function named([peer, variant, group, units, passes, counts, extras]) {
  return { peer, variant, group, units, passes, counts, ...extras };
}

/** Adds to a row what follows from its passes and its task. */
function prepare(task, row, at) {
  row.at = at;
  row.task = task;
  row.owner = model.peers[row.peer];
  row.work = task.groups[row.group];
  row.ranked = !row.fault;
  row.given = task.texts[row.counts] ? task.texts[row.counts].split(", ").length : 0;
  row.checked = (row.checks ?? []).map((check) => task.checks[check][1]);
  row.rates = row.passes.map((ns) => (row.units * 1e9) / Math.max(ns, 1));
  row.values = row.rates.map((rate) => (row.work.measure === "ms" ? 1000 / rate : rate));
  row.median = row.passes.length > 0 && row.fault !== "failed in a pass" ? median(row.rates) : null;
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

/** The number that is shown of a rate: a speed, or a time for long units. */
export function valueOf(row, rate) {
  return row.work.measure === "ms" ? 1000 / rate : rate;
}

/** A number of a row with as many digits as matter. */
export function figure(row, value) {
  return grouped(value, row.work.measure === "ms" ? (value < 10 ? 2 : 1) : 0);
}

/** Digits in groups of three. */
export function grouped(number, digits = 0) {
  return number.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The ratio of a row to another one with three digits and the other's name, as the summaries have it. */
export function ratioText(row, other) {
  const ratio = row.median / other.median;
  const isOwnOtherWay = row.owner === other.owner && row !== other;
  const name = row.group === other.group && !isOwnOtherWay ? other.owner.name : `${other.owner.name} ${other.variant}`;
  return `${ratio.toFixed(ratio >= 100 ? 0 : ratio >= 10 ? 1 : 2)} × ${name}`;
}

/** Gives the parts of a table their roles, which another layout on a narrow screen would take from them. */
export function keepRoles(table) {
  for (const part of [table, ...table.querySelectorAll("thead, tbody, tr, td, th")]) {
    const name = part.tagName.toLowerCase();
    part.setAttribute("role", roles[name] ?? (part.scope === "col" ? "columnheader" : "rowheader"));
  }
}

const roles = { table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", td: "cell" };

/** An element with a text; parts of tables have their role in any layout. */
export function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  if (roles[name]) made.setAttribute("role", roles[name]);
  return made;
}

/** The heading of a column, a row or a group of rows. */
export function heading(text, scope, className = "") {
  const made = element("th", text, className);
  made.scope = scope;
  made.setAttribute("role", scope === "col" ? "columnheader" : "rowheader");
  return made;
}

/** A table with a caption, in a frame that the keyboard can move. */
export function framed(caption, className, ...parts) {
  const frame = element("div", "", "frame");
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", caption);
  frame.tabIndex = 0;
  const table = element("table", "", className);
  table.append(element("caption", caption), ...parts);
  frame.append(table);
  return frame;
}

/** Shows `make()` in the place of what a `details` holds when it is first opened. */
export function whenOpened(details, make) {
  details.addEventListener("toggle", () => {
    if (!details.open || details.dataset.made) return;
    details.dataset.made = "yes";
    details.replaceChildren(details.querySelector("summary"), make());
  });
}
