// The matrix of hostile cases, and the sizes of each part of the Nostr corpus, made when they are opened.
import { element, framed, grouped, heading, model, whenOpened } from "./model.js";

const outcomes = { a: "accepts", r: "refuses", c: "crashes", h: "hangs" };
const right = { accept: "a", refuse: "r", either: "ar" };
const captions = {
  hostile:
    "What each peer does with each case; ✗ marks a wrong outcome, – a missing path; “either” is a valid case with an invalid record, which a strict verifier may refuse",
  sizes: "Bytes per event in each part of the corpus, bare and compressed",
};

/** Makes both tables when they are opened. */
export function showTablesWhenOpened() {
  for (const details of document.querySelectorAll("details[data-hostile]")) whenOpened(details, matrix);
  for (const details of document.querySelectorAll("details[data-sizes]")) whenOpened(details, sizes);
}

function matrix() {
  const { cases, peers, outcomes: letters } = model.hostile;
  const body = element("tbody");
  cases.forEach(([name, must], at) => {
    const line = element("tr");
    line.append(heading(name, "row", "case"), element("td", must), ...letters.map((of) => outcome(of[at], must)));
    body.append(line);
  });
  const names = peers.map((peer) => model.peers[peer].name);
  return framed(captions.hostile, "matrix", head(["case", "must", ...names]), body);
}

function outcome(letter, must) {
  if (letter === "-") return element("td", "–", "absent");
  const isRight = right[must].includes(letter);
  return element("td", isRight ? outcomes[letter] : `✗ ${outcomes[letter]}`, isRight ? "right" : "wrong");
}

function sizes() {
  const body = element("tbody");
  for (const { part, format, peer, bytes } of model.sizes) {
    const line = element("tr");
    const numbers = bytes.map((number) => element("td", grouped(number, 1), "number"));
    line.append(heading(`${format}, ${part}`, "row"), element("td", model.peers[peer].name), ...numbers);
    body.append(line);
  }
  return framed(captions.sizes, "plain", head(["format, part", "peer", "raw", "gzip", "zstd", "zstd, framed"]), body);
}

function head(names) {
  const made = element("thead");
  const line = element("tr");
  line.append(...names.map((name) => heading(name, "col")));
  made.append(line);
  return made;
}
