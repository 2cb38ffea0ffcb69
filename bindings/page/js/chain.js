// The chain of proof as a picture: one station for each step from the handle to the last block.
import { el, shortened, svgEl } from "./dom.js";

const WORDS = { proved: "proved", claimed: "not proved", refused: "refused", open: "not reached" };
const GLYPHS = { proved: "M-6 0.5 L-1.8 5 L6.5 -4.5", claimed: "M-5.5 0 H5.5", refused: "M-5 -5 L5 5 M5 -5 L-5 5", open: "M0 0 h0.01" };

/** The picture of stations `{head, sub, state, word, title}`; it is drawn again if its width changes. */
export function chainPicture(stations) {
  const box = el("div", { class: "chain" });
  let drawn = 0;
  const draw = () => {
    const width = Math.floor(box.clientWidth);
    if (width === 0 || width === drawn) return;
    drawn = width;
    box.replaceChildren(width / stations.length >= 120 ? across(stations, width) : down(stations, width));
  };
  new ResizeObserver(draw).observe(box);
  return box;
}

function picture(width, height, stations) {
  const label = stations.map(({ head, sub, state, word }) => `${head}: ${word ?? WORDS[state]}${sub ? `, ${sub}` : ""}`).join("; ");
  return svgEl("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Chain of proof. ${label}` });
}

function across(stations, width) {
  const svg = picture(width, 116, stations);
  const step = width / stations.length;
  const x = (index) => step * (index + 0.5);
  stations.slice(1).forEach(({ state }, index) => svg.append(svgEl("path", { class: `link st-${state}`, d: `M${x(index) + 19} 24 H${x(index + 1) - 19}` })));
  const room = Math.floor((step - 12) / 7.4);
  stations.forEach((station, index) => {
    const group = symbol(station, x(index), 24);
    const word = station.word ?? WORDS[station.state];
    group.append(text("head", x(index), 64, station.head, room), text("sub", x(index), 83, station.sub ?? "", room), text("word", x(index), 102, word, room + 2));
    svg.append(group);
  });
  for (const label of svg.querySelectorAll("text")) label.setAttribute("text-anchor", "middle");
  return svg;
}

function down(stations, width) {
  const step = 62;
  const svg = picture(width, step * stations.length, stations);
  const y = (index) => step * (index + 0.5);
  stations.slice(1).forEach(({ state }, index) => svg.append(svgEl("path", { class: `link st-${state}`, d: `M22 ${y(index) + 19} V${y(index + 1) - 19}` })));
  const room = Math.floor((width - 60) / 7.6);
  stations.forEach((station, index) => {
    const group = symbol(station, 22, y(index));
    const word = station.word ?? WORDS[station.state];
    group.append(text("head", 54, y(index) - 2, station.head, room - word.length - 3), text("sub", 54, y(index) + 16, station.sub ?? "", room));
    const label = text("word", width, y(index) - 2, word, room);
    label.setAttribute("text-anchor", "end");
    group.append(label);
    svg.append(group);
  });
  return svg;
}

function symbol({ state, title, sub }, x, y) {
  const group = svgEl("g", { class: `station st-${state}` });
  group.append(svgEl("title", {}, title ?? sub ?? ""), svgEl("circle", { cx: x, cy: y, r: 17 }), svgEl("path", { class: "glyph", transform: `translate(${x} ${y})`, d: GLYPHS[state] }));
  return group;
}

function text(name, x, y, words, room) {
  return svgEl("text", { class: name, x, y }, shortened(words, Math.max(6, room)));
}
