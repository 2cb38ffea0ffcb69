// How do the passes of each row lie? Drawn by Observable Plot, when somebody asks to see it.
import { lines } from "./model.js";

/** Draws the chart of a task when its place is opened, and again when it has another width. */
export function makeDistributions() {
  for (const place of document.querySelectorAll(".distribution[data-task]")) {
    place.addEventListener("toggle", () => place.open && draw(place));
  }
  addEventListener("resize", () => {
    for (const place of document.querySelectorAll(".distribution[open]")) draw(place);
  });
}

function draw(place) {
  const frame = place.querySelector(".plot");
  const width = Math.max(300, frame.clientWidth - 20);
  const rows = lines.map(({ row }) => row).filter((row) => row.task === place.dataset.task && row.rate && row.passes.length > 1);
  if (frame.dataset.width === String(width) || rows.length === 0) return;
  frame.dataset.width = String(width);
  frame.replaceChildren(chart(rows, width));
}

function chart(rows, width) {
  const isNarrow = width < 560;
  const names = rows.map((row, at) => label(row, at, isNarrow ? 18 : 44));
  const passes = rows.flatMap((row, at) => deviations(row).map((percent) => ({ percent, at })));
  const y = { type: "band", domain: rows.map((_, at) => at), tickFormat: (at) => names[at], label: null, tickSize: 0 };
  const svg = Plot.plot({
    className: "distribution",
    ariaLabel: "passes of each row",
    ariaDescription: "how far each pass is from the median of its row, in percent",
    width,
    height: 60 + 22 * rows.length,
    marginLeft: isNarrow ? 130 : 290,
    x: { label: "faster or slower than the row’s median, percent", grid: true, nice: true, ticks: isNarrow ? 4 : 8 },
    y,
    marks: [
      Plot.ruleX([0], { strokeOpacity: 0.4 }),
      Plot.boxX(passes, { x: "percent", y: "at", r: 0, fill: "var(--bar)", stroke: "var(--soft)" }),
      Plot.dot(passes, { x: "percent", y: "at", r: 2.5, fill: "var(--ours)", stroke: null, fillOpacity: 0.8 }),
    ],
  });
  // It is one picture with one name; its parts have none.
  for (const part of svg.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
  svg.setAttribute("role", "img");
  return svg;
}

/** Each pass, in percent of the row's median; more is faster. */
function deviations(row) {
  const rate = (pass) => (row.measure === "ms" ? 1e3 / pass : pass);
  return row.passes.map((pass) => 100 * (rate(pass) / row.rate.median - 1));
}

function label(row, at, most) {
  const text = most < 30 ? row.peer : `${row.peer} · ${row.variant}`;
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
