// A row's median as a bar and its passes as points, on a scale that its kind of work shares.
import { figure, valueOf } from "./model.js";

const svgName = "http://www.w3.org/2000/svg";

/** The scale of some rows: from zero, or logarithmic where their numbers span more than 20 times. */
export function scaleOf(rows) {
  const values = rows.filter((row) => row.ranked).flatMap((row) => row.values);
  const least = Math.min(...values);
  const greatest = Math.max(...values, Number.MIN_VALUE);
  if (!(least > 0 && greatest > 20 * least)) return { isLogarithmic: false, along: (value) => value / greatest };
  const start = 10 ** Math.floor(Math.log10(least) - 0.3);
  return { isLogarithmic: true, along: (value) => Math.log(value / start) / Math.log(greatest / start) };
}

/** The picture of a row. */
export function bar(row, { along }) {
  const svg = document.createElementNS(svgName, "svg");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", words(row));
  if (row.median === null) return svg;
  const share = (value) => `${(100 * Math.min(Math.max(along(value), 0), 1)).toFixed(2)}%`;
  svg.append(shape("rect", { class: "bar", width: share(valueOf(row, row.median)) }));
  svg.append(...row.values.map((value) => shape("circle", { class: "pass", cx: share(value), cy: 12, r: 2.5 })));
  return svg;
}

function shape(name, attributes) {
  const made = document.createElementNS(svgName, name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}

function words(row) {
  if (row.median === null) return "no median";
  const passes = row.values.map((value) => figure(row, value)).join(", ");
  return `median ${figure(row, valueOf(row, row.median))} ${row.work.measure}, passes ${passes}`;
}
