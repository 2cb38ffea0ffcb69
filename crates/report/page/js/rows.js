// The table of all rows of a task, made when it is opened, and again after each choice.
import { element, figure, framed, heading, ratioText, valueOf, whenOpened } from "./model.js";
import { baselineOf, choices, isChosen } from "./choices.js";
import { bar, scaleOf } from "./bars.js";
import { detail, detailsButton } from "./details.js";

const columns = [
  { name: "peer", sort: (row) => row.owner.name, isText: true },
  { name: "variant", sort: (row) => row.variant, isText: true },
  { name: "speed", sort: (row) => row.median, className: "number" },
  { name: "median and every pass", className: "drawn" },
  { name: "slowest – fastest", sort: (row) => Math.max(...row.rates) / Math.min(...row.rates), className: "number" },
  { name: "ratio", sort: (row) => row.ratio },
  { name: "checks", sort: (row) => row.checked.length },
  { name: "counts", sort: (row) => row.given, className: "number" },
];
const tables = [];

/** Makes the tables of these tasks when they are opened. */
export function showRowsWhenOpened(tasks) {
  for (const details of document.querySelectorAll("details[data-rows]")) {
    const task = tasks.find(({ name }) => name === details.dataset.rows);
    const table = { task, details, order: { column: "speed", sign: -1 }, bodies: [] };
    tables.push(table);
    whenOpened(details, () => make(table));
  }
}

/** Fills every opened table by the choices; opens those with chosen rows if `opens`. */
export function fillTables(opens) {
  const choice = choices();
  for (const table of tables) {
    if (opens && table.task.rows.some((row) => isChosen(row, choice))) open(table.details);
    if (table.details.dataset.made) fill(table);
  }
}

/** Opens a `details` and those around it. */
function open(details) {
  for (let place = details; place; place = place.parentElement?.closest("details")) place.open = true;
}

function make(table) {
  const head = element("thead");
  const line = element("tr");
  table.headings = columns.map((column) => columnHeading(table, column));
  const more = heading("", "col", "more");
  more.append(element("span", "details", "unseen"));
  line.append(...table.headings, more);
  head.append(line);
  table.bodies = table.task.groups.map(() => element("tbody"));
  const caption = `${table.task.title}: every row`;
  const frame = framed(caption, "speeds all", head, ...table.bodies);
  frame.dataset.task = table.task.anchor;
  fill(table);
  return frame;
}

function columnHeading(table, column) {
  if (!column.sort) return heading(column.name, "col", column.className);
  const made = heading("", "col", column.className);
  made.dataset.sort = column.name;
  const button = element("button", column.name);
  button.type = "button";
  button.addEventListener("click", () => {
    const { order } = table;
    const first = column.isText ? 1 : -1;
    table.order = { column: column.name, sign: order.column === column.name ? -order.sign : first };
    fill(table);
  });
  made.append(button);
  return made;
}

function fill(table) {
  const choice = choices();
  for (const made of table.headings) {
    const isSorted = made.dataset.sort === table.order.column;
    if (made.dataset.sort) made.setAttribute("aria-sort", !isSorted ? "none" : table.order.sign > 0 ? "ascending" : "descending");
  }
  table.task.groups.forEach((group, at) => fillGroup(table, at, choice));
}

function fillGroup(table, group, choice) {
  const { task, bodies, order } = table;
  const against = baselineOf(task, group, choice);
  const all = task.rows.filter((row) => row.group === group);
  for (const row of all) row.ratio = against && row.ranked ? row.median / against.median : null;
  const rows = sorted(all.filter((row) => isChosen(row, choice)), order);
  const scale = scaleOf(all);
  const most = Math.max(...all.map((row) => row.given));
  const body = bodies[group];
  body.hidden = rows.length === 0;
  const show = () => fillGroup(table, group, choices());
  const lines = rows.flatMap((row) => {
    const line = rowLine(row, { against, scale, most, show });
    return row.isOpen ? [line, detail(row, columns.length + 1)] : [line];
  });
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset.at : null;
  body.replaceChildren(groupLine(task.groups[group], against, scale, choice), ...lines);
  if (focused) body.querySelector(`button[data-at="${focused}"]`)?.focus();
}

/** Rows without a value come after those with one, in any order. */
function sorted(rows, { column, sign }) {
  const { sort } = columns.find(({ name }) => name === column);
  return rows.sort((a, b) => {
    const [x, y] = [sort(a) ?? null, sort(b) ?? null];
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
  });
}

function groupLine(group, against, scale, { baseline }) {
  const line = element("tr", "", "group");
  const made = heading("", "rowgroup");
  made.colSpan = columns.length + 1;
  const ratio = against ? `ratios to ${against.owner.name} ${against.variant}` : baseline && `${baseline} has no ranked row`;
  const words = [group.measure, group.words, ratio, scale.isLogarithmic && "logarithmic scale"];
  made.append(element("span", group.name, "kind"), ...words.filter(Boolean).map((text) => element("span", text, "words")));
  line.append(made);
  return line;
}

function rowLine(row, { against, scale, most, show }) {
  const classes = ["row", row.owner.ours && "ours", !row.ranked && "unranked", row === against && "baseline"];
  const line = element("tr", "", classes.filter(Boolean).join(" "));
  line.dataset.row = row.at;
  const drawn = element("td", "", "drawn");
  drawn.append(bar(row, scale));
  const button = detailsButton(row, show);
  button.dataset.at = row.at;
  const more = element("td", "", "more");
  more.append(button);
  line.append(peerCell(row), variantCell(row), medianCell(row), drawn, rangeCell(row), ratioCell(row, against), checksCell(row), countsCell(row, most), more);
  return line;
}

function peerCell(row) {
  const cell = heading("", "row", "peer");
  cell.append(element("span", row.owner.name, "name"), element("span", `${row.owner.language} ${row.owner.version}`, "version"));
  return cell;
}

function variantCell(row) {
  const cell = element("td", row.variant, "variant");
  if (row.batch) cell.append(element("span", row.batch, "chip"));
  return cell;
}

function medianCell(row) {
  return element("td", row.median === null ? "–" : figure(row, valueOf(row, row.median)), "number median");
}

function rangeCell(row) {
  const [least, greatest] = [Math.min(...row.values), Math.max(...row.values)];
  return element("td", row.median === null ? "–" : `${figure(row, least)} – ${figure(row, greatest)}`, "number range");
}

function ratioCell(row, against) {
  const isKnown = row.ratio !== null;
  return element("td", isKnown ? ratioText(row, against) : "–", isKnown ? "ratio" : "ratio none");
}

/** A letter for each check that is made, and a dot for each that is not; their names for screen readers. */
function checksCell(row) {
  const cell = element("td", "", "checks");
  const letters = element("span", "", "letters");
  letters.setAttribute("aria-hidden", "true");
  for (const [letter, name] of row.task.checks) {
    const isMade = row.checked.includes(name);
    const shown = element("span", isMade ? letter : "·", isMade ? "made" : "unmade");
    if (isMade) shown.title = name;
    letters.append(shown);
  }
  cell.append(letters, element("span", row.checked.join(", ") || "none", "unseen"));
  return cell;
}

function countsCell(row, most) {
  const cell = element("td", "", "number counts");
  const isWhole = row.given === most;
  const text = row.fault ?? (isWhole ? `${most} same` : `${row.given} of ${most} same`);
  cell.append(element("span", text, row.fault ? "bad" : isWhole ? "good" : "fair"));
  return cell;
}
