// What is shown of each form of input.
import { bounded, byteSize, counted, el, indentedJson, numeral, shortened } from "./dom.js";
import { chainPicture } from "./chain.js";
import { cidBefore } from "./cid.js";
import { nameOfForm } from "./forms.js";
import { hexView } from "./hex.js";
import { VirtualList } from "./list.js";
import { bytesOf, commitStep, recordDetail, Records } from "./records.js";
import { refusalCard, refusalFacts } from "./refusal.js";
import { Tables } from "./repository.js";
import { TreePicture, treeFacts } from "./tree.js";
import { section, verdictCard } from "./verdict.js";

export const NOT_REACHED = "open";

/** The stations of the identity: handle, DID and key. */
export function identityStations({ did, identity, key }) {
  const isProved = identity?.source === "log";
  const isStated = identity?.source === "document";
  const handle = identity?.handle;
  const stations = [];
  if (handle) stations.push({ head: "Handle", sub: handle, state: identity.isConfirmed ? "proved" : "claimed", word: identity.isConfirmed ? "confirmed" : "claimed by the DID" });
  stations.push({ head: "Account", sub: did ?? "unknown", title: did, state: isProved ? "proved" : did ? "claimed" : NOT_REACHED, word: isProved ? "DID log proved" : isStated ? "DID document" : did ? "named in the data" : "unknown" });
  stations.push({ head: "Key", sub: key ?? "none given", title: key, state: isProved ? "proved" : key ? "claimed" : NOT_REACHED, word: isProved ? "from the log" : isStated ? "from the document" : key ? "given by you" : "not known" });
  return stations;
}

/** Who signed, as far as it is known whose the key is. */
export function signer(did, identity) {
  if (identity?.source === "log") return did;
  return identity ? `the key in the DID document of ${did}` : `the key that you gave, for ${did},`;
}

/** Where in the chain a code belongs: index among signature, tree and records. */
function brokenAt(code) {
  const layer = code.split("/")[0];
  return { car: 0, commit: 0, signature: 0, tree: 1, record: 2 }[layer] ?? 0;
}

/** A proved repository. */
export function repositoryView({ result, tables: parts, bytes, identity, key, took, name, ask, lookUpKey }) {
  const tables = new Tables(parts);
  const collections = tables.collections();
  const { signed } = result;
  const isClean = signed && result.invalidRecords === 0;
  const text = signed ? `Every block from the signature to the last record is what ${signer(result.did, identity)} signed at revision ${result.rev}.` : `Every block has its hash and the tree is canonical. Who signed it is not proved: the key of ${result.did} is not known here.`;
  const stations = [...identityStations({ did: result.did, identity, key }), { head: "Signature", sub: `rev ${result.rev}`, state: signed ? "proved" : NOT_REACHED, word: signed ? "valid" : "not checked" }, { head: "Tree", sub: counted(result.nodes, "node"), state: "proved", word: "canonical, whole" }, { head: "Records", sub: counted(result.records, "record"), state: result.invalidRecords > 0 ? "claimed" : "proved", word: result.invalidRecords > 0 ? `${numeral(result.invalidRecords)} invalid` : "to the last block" }];
  const facts = [[numeral(result.records), result.records === 1 ? "record" : "records"], [numeral(collections.length), collections.length === 1 ? "collection" : "collections"], [numeral(result.blocks), "blocks"], [byteSize(bytes.length), "read"], [`${numeral(Math.round(took))} ms`, "to verify here"]];
  if (result.extraBlocks > 0) facts.push([numeral(result.extraBlocks), `blocks that the commit does not lead to (${byteSize(result.extraBytes)})`]);
  let picture;
  const records = new Records({ tables, collections, bytes, summary: result, ask, onChoose: (record) => picture.light(record) });
  picture = new TreePicture(tables, bytes, collections, (record) => records.reveal(record));
  const cards = [verdictCard({ state: isClean ? "proved" : "partial", title: signed ? "Proved" : "Whole; author not proved", text, facts, action: signed ? undefined : lookUpAction(result.did, lookUpKey) }), section("Chain of proof", chainPicture(stations))];
  if (result.firstInvalid) cards.push(refusalCard(result.firstInvalid, bytes, `Signed but invalid: the first of ${counted(result.invalidRecords, "record")}`));
  cards.push(section("Tree", el("p", { class: "soft small" }, treeFacts(tables)), picture.element), section("Records", records.element));
  picture.say();
  return { cards, said: `${signed ? "Proved" : "Whole, author not proved"}: ${counted(result.records, "record")} of ${name}` };
}

/** The step that finds the key of an account. */
export function lookUpAction(did, lookUpKey) {
  return /^did:(plc|web):/.test(did ?? "") ? { label: `Look up the key of ${shortened(did, 40)}`, act: () => lookUpKey(did) } : undefined;
}

/** A slice that was taken for a whole repository. */
const SLICE_HINT = "If this is a slice that proves one record or collections, enter the path of the record or the names of the collections under “Account, key, record path or collections, directory”, and verify again.";

/** A refused repository or record proof. */
export function refusedView({ form, refusal, bytes, identity, key, did, took }) {
  const broken = brokenAt(refusal.code);
  const isBeforeSignature = refusal.code.startsWith("car/") || refusal.code.startsWith("commit/");
  // Records are checked during the walk over the tree, which then has not ended.
  const state = (index) => (index === broken ? "refused" : index < broken && index === 0 && key ? "proved" : NOT_REACHED);
  const word = (index) => (index === broken ? refusal.code : index < broken ? (index === 0 ? (key ? "valid" : "not checked") : "not finished") : undefined);
  const stations = [...identityStations({ did: did ?? refusal.did, identity, key }), { head: isBeforeSignature ? "Archive, commit" : "Signature", state: state(0), word: word(0) }, { head: "Tree", state: state(1), word: word(1) }, { head: form === "record" ? "Record" : "Records", state: state(2), word: word(2) }];
  const cards = [verdictCard({ state: "refused", title: "Refused", code: refusal.code, text: sentence(refusal.rule), facts: [[byteSize(bytes.length), "read"], [`${numeral(Math.round(took))} ms`, "to verify here"]] }), section("Chain of proof", chainPicture(stations)), refusalCard(refusal, bytes)];
  if (form === "repository" && /^(tree\/missing-node|record\/missing)$/.test(refusal.code)) cards[0].append(el("p", { class: "soft small" }, SLICE_HINT));
  return { cards, said: `Refused: ${refusal.code}, ${refusal.rule}` };
}

/** A text with a capital and a full stop. */
export function sentence(text) {
  const shown = bounded(text, 400);
  return `${capitalized(shown)}${/[.!?…]$/.test(shown) ? "" : "."}`;
}

export const capitalized = (text) => (text.startsWith("did:") ? text : `${text.charAt(0).toUpperCase()}${text.slice(1)}`);

/** A proved record, or its absence. */
export async function recordView({ result, bytes, identity, key, took, ask }) {
  const { summary, record, path, nodes } = result;
  const stations = [...identityStations({ did: summary.did, identity, key }), { head: "Signature", sub: `rev ${summary.rev}`, state: "proved", word: "valid" }, { head: "Path", sub: counted(nodes.length, "node"), state: "proved", word: "canonical" }, { head: "Record", sub: path, state: "proved", word: record ? "present" : "proved absent" }];
  const facts = [[numeral(nodes.length), "nodes on the path"], [byteSize(bytes.length), "read"], [`${numeral(Math.round(took))} ms`, "to verify here"]];
  const text = record ? `The record at ${path} is in the repository that ${signer(summary.did, identity)} signed at revision ${summary.rev}.` : `The repository that ${signer(summary.did, identity)} signed at revision ${summary.rev} has no record at ${path}.`;
  const cards = [verdictCard({ state: "proved", title: record ? "Record proved" : "Absence proved", text, facts }), section("Chain of proof", chainPicture(stations))];
  const steps = [commitStep(summary), ...nodes.map(([at, length], index) => ({ name: index === 0 ? "Root of the tree" : "Node", cid: cidBefore(bytes, at), length }))];
  if (record) {
    const [at, length] = record;
    steps.push({ name: "Record", cid: cidBefore(bytes, at), length });
    const { result: json, refusal } = await ask({ form: "block" }, bytes.slice(at, at + length));
    cards.push(section("Record", el("div", { class: "detail" }, ...recordDetail({ path, cid: cidBefore(bytes, at), length, json, refusal, steps }), bytesOf(bytes, at, length))));
  } else {
    cards.push(section("Proof path", el("ol", { class: "proof" }, ...steps.map((step) => el("li", {}, `${step.name}, ${byteSize(step.length)} `, el("span", { class: "mono" }, shortened(step.cid, 30)))))));
  }
  return { cards, said: record ? `Record proved: ${path}` : `Absence proved: ${path}` };
}

/** All records of collections. */
export function rangeView({ result, patterns, bytes, identity, key, took, ask }) {
  const { summary, records } = result;
  const names = bounded(patterns.join(", "), 200);
  const invalid = summary.invalidRecords;
  const stations = [...identityStations({ did: summary.did, identity, key }), { head: "Signature", sub: `rev ${summary.rev}`, state: "proved", word: "valid" }, { head: "Range", sub: counted(summary.nodes, "node"), state: "proved", word: "canonical, no gap" }, { head: "Records", sub: counted(records.length, "record"), state: invalid > 0 ? "claimed" : "proved", word: invalid > 0 ? `${numeral(invalid)} invalid` : "and no others" }];
  const facts = [[numeral(records.length), records.length === 1 ? "record" : "records"], [numeral(summary.nodes), "nodes"], [byteSize(bytes.length), "read"], [`${numeral(Math.round(took))} ms`, "to verify here"]];
  const text = `These are all records of ${names} in the repository that ${signer(summary.did, identity)} signed at revision ${summary.rev}.`;
  const cards = [verdictCard({ state: invalid > 0 ? "partial" : "proved", title: "Collections proved", text, facts }), section("Chain of proof", chainPicture(stations))];
  if (summary.firstInvalid) cards.push(refusalCard(summary.firstInvalid, bytes, `Signed but invalid: the first of ${counted(invalid, "record")}`));
  const fillRow = (row, index) => row.append(el("span", { class: "name" }, bounded(records[index].path, 200)), el("span", { class: "size" }, byteSize(records[index].length)));
  const onChoose = async (index) => {
    const { path, offset, length } = records[index];
    return [el("h3", {}, bounded(path, 300)), el("p", { class: "small soft mono" }, bounded(cidBefore(bytes, offset), 100)), await contentOf(bytes, offset, length, ask), bytesOf(bytes, offset, length)];
  };
  if (records.length > 0) cards.push(section("Records", listAndDetail({ label: "Records", count: records.length, fillRow, onChoose, hint: "Choose a record to see its content." }).element));
  return { cards, said: `Collections proved: ${counted(records.length, "record")} of ${names}` };
}

/** The content of a block, as JSON. */
export async function contentOf(bytes, at, length, ask) {
  const { result: json, refusal } = await ask({ form: "block" }, bytes.slice(at, at + length));
  return json === undefined ? el("p", {}, bounded(refusal.rule, 300)) : el("pre", { tabindex: 0, "aria-label": "Content of the record" }, indentedJson(json));
}

/** A list of items next to the detail of the chosen one. */
export function listAndDetail({ label, count, fillRow, onChoose, hint }) {
  const detail = el("div", { class: "detail" }, el("p", { class: "empty" }, hint));
  const list = new VirtualList({ label, fillRow, onChoose: async (index) => detail.replaceChildren(...(await onChoose(index))) });
  list.show(count);
  return { element: el("div", { class: "split" }, el("div", {}, list.element), detail), list };
}

/** Nostr events. */
export function nostrView({ result, bytes, took }) {
  const refused = result.map((row, index) => (row.refusal ? index : -1)).filter((index) => index >= 0);
  const isOne = result.length === 1;
  const state = result.length === 0 ? "partial" : refused.length === 0 ? "proved" : "refused";
  const first = result[refused[0]];
  const title = result.length === 0 ? "No event" : refused.length === 0 ? "Verified" : isOne ? "Refused" : `${numeral(refused.length)} of ${counted(result.length, "event")} refused`;
  const text = refused.length === 0 ? "Every id is the hash of its event, and every author signed it." : `${isOne ? "" : `The first is event ${numeral(refused[0] + 1)}: `}${first.refusal.rule}.`;
  const facts = [[numeral(result.length - refused.length), "verified"], [numeral(refused.length), "refused"], [byteSize(bytes.length), "read"], [`${numeral(Math.round(took))} ms`, "to verify here"]];
  const of = (code) => refused.filter((index) => result[index].refusal.code.startsWith(code)).length;
  const station = (head, bad, good, isReached = true) => ({ head, sub: bad > 0 ? `${numeral(bad)} refused` : undefined, state: bad > 0 ? "refused" : isReached ? "proved" : NOT_REACHED, word: bad > 0 ? "refused" : good });
  const unreadable = of("event/unreadable");
  const stations = [station("Events", unreadable, "well formed"), station("Ids", of("event/id"), "hash of the event", unreadable < result.length), station("Signatures", of("signature/"), "of the authors", of("event/") < result.length)];
  const cards = [verdictCard({ state, title, text, code: refused.length > 0 ? first.refusal.code : undefined, facts }), section("Chain of proof", chainPicture(stations))];
  if (refused.length > 0) cards.push(refusalCard({ ...first.refusal, index: undefined }, bytes, isOne ? undefined : `Why event ${numeral(refused[0] + 1)} is refused`));
  if (result.length > 0) cards.push(section("Events", nostrList(result, refused, bytes)));
  return { cards, said: title };
}

function nostrList(rows, refused, bytes) {
  const decoder = new TextDecoder();
  let shown = null;
  const rowAt = (index) => rows[shown ? shown[index] : index];
  const fillRow = (element, index) => {
    const row = rowAt(index);
    element.append(row.refusal ? el("span", { class: "bad" }, "✗") : el("span", { class: "good" }, "✓"), el("span", { class: "name" }, row.id ?? bounded(decoder.decode(bytes.subarray(row.offset, row.offset + Math.min(60, row.length))))), el("span", { class: "size" }, row.refusal ? row.refusal.code : `kind ${row.kind}`));
  };
  const onChoose = async (index) => {
    const { offset, length, refusal } = rowAt(index);
    const text = decoder.decode(bytes.subarray(offset, offset + Math.min(length, 1 << 16)));
    const parts = [el("pre", { tabindex: 0, "aria-label": "The event" }, indentedJson(text))];
    if (refusal) parts.unshift(refusalFacts(refusal), hexView(bytes, refusal.offset ?? offset, Math.max(1, refusal.length)));
    else parts.push(bytesOf(bytes, offset, length));
    return parts;
  };
  const { element, list } = listAndDetail({ label: "Events", count: rows.length, fillRow, onChoose, hint: "Choose an event to see it." });
  if (refused.length === 0 || refused.length === rows.length) return element;
  const box = el("input", { type: "checkbox", id: `${list.id}-refused`, change: () => {
    shown = box.checked ? refused : null;
    list.show(shown ? refused.length : rows.length);
  } });
  return el("div", {}, el("p", { class: "small" }, box, " ", el("label", { for: box.id }, `Only the ${numeral(refused.length)} refused`)), element);
}

/** A DID log or a DID document. */
export function identityView({ form, result, refusal, bytes, took, isConfirmed }) {
  const isLog = form === "log";
  const facts = [[byteSize(bytes.length), "read"], [`${numeral(Math.round(took))} ms`, "to verify here"]];
  if (refusal) {
    const stations = [{ head: isLog ? "Log" : "Document", state: "refused", word: refusal.code, sub: refusal.index === undefined ? undefined : `entry ${refusal.index}` }, { head: "Key", state: NOT_REACHED }];
    return { cards: [verdictCard({ state: "refused", title: "Refused", code: refusal.code, text: sentence(refusal.rule), facts }), section("Chain of proof", chainPicture(stations)), refusalCard(refusal, bytes)], said: `Refused: ${refusal.code}` };
  }
  const identity = { ...result, source: form, isConfirmed };
  const stations = identityStations({ did: result.did, identity, key: result.key });
  if (isLog) stations.splice(-1, 0, { head: "Operations", sub: counted(result.operations.length, "operation"), state: "proved", word: "signed in a chain" });
  const text = isLog ? `The log begins with the operation whose hash is ${result.did}, and each operation is signed by a key of the one before.` : "A DID document is a statement of its server. Only a DID log proves it.";
  const state = isLog && !result.deleted ? "proved" : "partial";
  const cards = [verdictCard({ state, title: result.deleted ? "Proved; the account was deleted" : isLog ? "DID log proved" : "DID document read", text, facts }), section("Chain of proof", chainPicture(stations))];
  const now = [["DID", result.did], ["Handle", result.handle], ["Signing key", result.key], ["Server", result.host]];
  cards.push(section("Account now", el("table", { class: "plain" }, ...now.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "mono" }, bounded(value ?? "none", 300)))))));
  if (isLog) cards.push(section("Operations", operationsOfLog(result.operations, bytes)));
  return { cards, said: `${isLog ? "DID log proved" : "DID document read"}: ${result.did}` };
}

const MAX_OPERATIONS = 500;

function operationsOfLog(steps, bytes) {
  const item = (step, index) => {
    const before = steps[index - 1] ?? {};
    const changes = [["handle", step.handle, before.handle], ["key", step.key, before.key], ["server", step.host, before.host]].filter(([, now, then]) => now !== then && now !== null);
    const when = step.createdAtMicros === null ? "" : ` · ${new Date(step.createdAtMicros / 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
    const li = el("li", { class: step.nullified ? "nullified" : "" }, el("b", {}, step.kind), `${step.nullified ? " (nullified)" : ""}${when} · ${index === 0 ? "its hash is the DID" : `signed by rotation key ${step.signer} of the operation before`}`, el("br"), el("span", { class: "mono soft" }, shortened(step.cid, 34)));
    for (const [name, now] of changes) li.append(el("br"), `${name}: `, el("span", { class: "mono" }, bounded(now, 200)));
    return li;
  };
  const list = el("div", { class: "log" }, el("ol", {}, ...steps.slice(0, MAX_OPERATIONS).map(item)));
  if (steps.length > MAX_OPERATIONS) list.append(el("p", { class: "soft small" }, `${numeral(steps.length - MAX_OPERATIONS)} more`));
  return list;
}

/** Options that are no key or no path. */
export function argumentView({ refusal, account, lookUpKey }) {
  const text = `Nothing was verified: ${refusal.rule}.`;
  return { cards: [verdictCard({ state: "partial", title: "Check the options", text, action: lookUpAction(account, lookUpKey) })], said: text };
}

/** An input of no known form. */
export function unknownView({ bytes }) {
  const marked = Math.min(16, bytes.length);
  const cards = [verdictCard({ state: "refused", title: "Not recognized", text: "Expected an archive (CAR), firehose frames, Nostr events in JSON, a DID log, a DID document or saved states.", facts: [[byteSize(bytes.length), "read"]] })];
  if (bytes.length > 0) cards.push(section("Bytes", hexView(bytes, 0, marked)));
  return { cards, said: "Not recognized" };
}

/** The words while an input is verified. */
export const workingText = (form, read, all) => `Verifying ${nameOfForm(form)}: ${byteSize(read)} of ${byteSize(all)}`;
