// The banner with the verdict.
import { bounded, el } from "./dom.js";

const MARKS = { proved: "✓", partial: "◐", refused: "✗" };

/** A banner: `state` is `proved`, `partial` or `refused`; `facts` are pairs of a figure and its words, `action` a next step. */
export function verdictCard({ state, title, text, code, facts = [], action }) {
  const heading = el("h2", {}, el("span", { class: "mark", "aria-hidden": "true" }, MARKS[state]), bounded(title, 120));
  if (code) heading.append(el("span", { class: "code" }, bounded(code, 60)));
  const card = el("section", { class: `card verdict ${state}`, "aria-label": "Verdict" }, heading, el("p", {}, bounded(text, 600)));
  if (action) card.append(el("p", {}, el("button", { type: "button", click: action.act }, bounded(action.label, 120))));
  if (facts.length > 0) card.append(el("ul", { class: "facts" }, ...facts.map(([figure, words]) => el("li", {}, el("b", {}, bounded(figure, 80)), ` ${words}`))));
  return card;
}

/** A section with a heading. */
export function section(title, ...children) {
  return el("section", { class: "card", "aria-label": title }, el("h2", {}, title), ...children);
}
