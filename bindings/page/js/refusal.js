// A refusal: the rule, the code with its meaning, and the bytes with the place marked.
import { bounded, byId, el, numeral } from "./dom.js";
import { hexView } from "./hex.js";

/** The meaning of each code and what to do, from the table of codes. */
const codes = () => JSON.parse(byId("codes").textContent);

/** The definition list of a refusal. */
export function refusalFacts(refusal, names = {}) {
  const list = el("dl", { class: "why" });
  const add = (term, ...words) => list.append(el("dt", {}, term), el("dd", {}, ...words));
  const known = codes()[refusal.code];
  add("Rule", bounded(refusal.rule, 500));
  add("Code", el("span", { class: "code" }, bounded(refusal.code, 60)));
  if (known) add("Meaning", known[0]);
  if (known) add("What to do", known[1]);
  if (refusal.index !== undefined) add(names.index ?? "Entry", numeral(refusal.index));
  if (refusal.path) add("Path", el("span", { class: "mono" }, bounded(refusal.path, 400)));
  if (refusal.cid) add("Block", el("span", { class: "mono" }, bounded(refusal.cid, 100)));
  if (refusal.offset !== undefined) add("Byte", `${numeral(refusal.offset)}${refusal.length > 1 ? ` to ${numeral(refusal.offset + refusal.length - 1)}` : ""}${refusal.place ? `: ${refusal.place}` : ""}`);
  return list;
}

/** The card of a refusal. */
export function refusalCard(refusal, bytes, title = "Why it is refused") {
  const card = el("section", { class: "card refusal", "aria-label": title }, el("h2", {}, title), refusalFacts(refusal));
  if (refusal.offset !== undefined && bytes.length > 0) card.append(hexView(bytes, Math.min(refusal.offset, bytes.length - 1), Math.max(1, refusal.length)));
  else card.append(el("p", { class: "soft small" }, "The rule is about the input as a whole, so that no byte is marked."));
  return card;
}
