// Ratios to the default rows, or to the fastest row of a chosen peer.
import { lines } from "./model.js";

const usual = new Map(
  lines.map(({ tr }) => [tr, { ratio: tr.querySelector(".ratio").textContent, isBaseline: tr.classList.contains("baseline") }]),
);
const usualWords = new Map([...document.querySelectorAll(".group .against")].map((words) => [words, words.textContent]));

/** Shows the ratios to the fastest row of the chosen peer in each kind of work. */
export function holdAgainst(peer) {
  for (const body of document.querySelectorAll(".speeds tbody")) {
    const own = lines.filter(({ tr }) => tr.parentElement === body);
    const against = peer ? fastest(own.filter(({ row }) => row.peer === peer && row.ranked)) : null;
    for (const line of own) show(line, peer, against);
    tell(body, peer, against);
  }
}

function fastest(candidates) {
  return candidates.reduce((best, line) => (!best || line.row.rate.median > best.row.rate.median ? line : best), null);
}

function show({ tr, row }, peer, against) {
  const cell = tr.querySelector(".ratio");
  if (!peer) {
    cell.textContent = usual.get(tr).ratio;
    cell.classList.toggle("none", cell.textContent === "–");
    tr.classList.toggle("baseline", usual.get(tr).isBaseline);
    delete tr.dataset.ratio;
    return;
  }
  const ratio = against && row.ranked ? row.rate.median / against.row.rate.median : null;
  cell.textContent = ratio === null ? "–" : ratio.toFixed(ratio >= 100 ? 0 : ratio >= 10 ? 1 : 2);
  cell.classList.toggle("none", ratio === null);
  tr.dataset.ratio = ratio ?? "";
  tr.classList.toggle("baseline", tr === against?.tr);
}

function tell(body, peer, against) {
  const heading = body.querySelector(".group th");
  let words = heading?.querySelector(".against");
  if (!heading || (!words && !against)) return;
  if (!words) {
    words = document.createElement("span");
    words.className = "against";
    heading.append(words);
  }
  if (!peer) words.textContent = usualWords.get(words) ?? "";
  else words.textContent = against ? `ratio to ${against.row.peer} ${against.row.variant}` : `${peer} has no ranked row`;
}
