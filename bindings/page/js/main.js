// Input, verification and result: the sequence of the page.
import { announce, bounded, byId, byteSize } from "./dom.js";
import { formOf, messagesIn, readPasted } from "./forms.js";
import { lookUp } from "./requests.js";
import { messagesView, statesView } from "./messages.js";
import { argumentView, identityView, nostrView, rangeView, recordView, refusedView, repositoryView, unknownView, workingText } from "./views.js";
import { Stopped, Work } from "./work.js";

const MAX_FILE = 1 << 30;
const MAX_KNOWN = 64;
const work = new Work();
/** Identities of this visit, by DID. */
const known = new Map();
/** The last input, to be verified again with other options. */
let last = null;
/** The states of accounts after the messages of this visit, as JSON: the next message is judged from them. */
let states;
/** The number of the newest verification: an older one shows nothing. */
let current = 0;

/** The options that the user has entered. */
function options() {
  const value = (id) => byId(id).value.trim() || undefined;
  return { did: value("did"), key: value("key"), path: value("path") };
}

/** Verifies bytes and shows the result; `given` has what a look-up knows. */
async function verify(bytes, name, given = {}) {
  current += 1;
  const turn = current;
  // The same input again is judged from where it was judged before.
  const before = last && isSame(last.bytes, bytes) ? last.states : states;
  last = { bytes, name, given, states: before };
  byId("again").disabled = false;
  const entered = options();
  const path = given.path ?? entered.path;
  const found = formOf(bytes);
  const form = found === "repository" && path ? (path.includes("/") ? "record" : "range") : found;
  working(form, 0, bytes.length);
  try {
    const view = await viewOf({ form, bytes, name, path, did: given.did ?? entered.did, key: entered.key, handle: given.handle, turn });
    if (turn === current) show(view);
  } catch (fault) {
    if (turn === current && !(fault instanceof Stopped)) showFault(fault);
  } finally {
    if (turn === current) done();
  }
}

async function viewOf({ form, bytes, name, path, did, key, handle, turn }) {
  if (form === "unknown") return unknownView({ bytes });
  if (form === "frame") return viewOfMessages({ bytes, name, key, turn });
  const account = did ?? (["repository", "record", "range"].includes(form) ? accountOf(bytes) : undefined);
  const identity = account && !key ? known.get(account) : undefined;
  const keyOf = key ?? identity?.key ?? undefined;
  const question = { form, key: keyOf };
  // The key of a known account proves data of that account alone.
  if (form !== "nostr") question.did = did ?? identity?.did;
  if (form === "record") question.path = path;
  if (form === "range") question.collections = path.split(/[\s,]+/).filter(Boolean);
  const { result, refusal, tables, took } = await timed(question, bytes, turn);
  const shared = { form, result, refusal, tables, bytes, name, identity, key: keyOf, did: account, took, ask: (ask, block) => work.ask(ask, block), lookUpKey };
  if (refusal?.code === "argument") return argumentView({ ...shared, account: ["record", "range"].includes(form) && !keyOf ? await committedAccount(bytes) : undefined });
  if (form === "states") return statesView({ ...shared, ...keepStates(result.json, turn) });
  if (form === "log" || form === "document") return identityView({ ...shared, isConfirmed: remember(form, result, handle) });
  if (refusal) return refusedView(shared);
  return { repository: repositoryView, record: recordView, range: () => rangeView({ ...shared, patterns: question.collections }), nostr: nostrView }[form](shared);
}

/** Messages are judged one after the other, from the states after the ones before. */
async function viewOfMessages({ bytes, name, key, turn }) {
  const keys = Object.fromEntries([...known].filter(([, identity]) => identity.key).map(([did, identity]) => [did, identity.key]));
  const question = { form: "frame", key, keys: key ? {} : keys, messages: messagesIn(bytes), states: last.states, nowMicros: Math.round(Date.now() * 1000) };
  const { result, refusal, took } = await timed(question, bytes, turn);
  if (refusal) return argumentView({ refusal, lookUpKey });
  const identityOf = (did) => (key ? undefined : known.get(did));
  const keyOf = (did) => key ?? keys[did];
  return messagesView({ result, bytes, name, took, identityOf, keyOf, ask: (ask, block) => work.ask(ask, block), lookUpKey, ...keepStates(result.states.json, turn) });
}

/** The answer to a question, with the time that it took; the progress is shown. */
async function timed(question, bytes, turn) {
  if (turn !== current) throw new Stopped();
  const asked = performance.now();
  const answer = await work.ask(question, bytes, (read) => turn === current && working(question.form, read, bytes.length));
  return { ...answer, took: performance.now() - asked };
}

/** Keeps states for the next messages; returns them with what forgets them. */
function keepStates(json, turn) {
  if (turn === current) states = json;
  return {
    states: json,
    forgetStates: () => {
      states = undefined;
      last = null;
      byId("again").disabled = true;
    },
  };
}

function isSame(one, other) {
  return one === other || (one.length === other.length && one.every((byte, at) => byte === other[at]));
}

/** The account that an archive names, if its identity is known: by the field `did` of a block. */
function accountOf(bytes) {
  if (known.size === 0) return undefined;
  const head = new TextDecoder().decode(bytes.subarray(0, 1 << 20));
  return [...known.keys()].find((did) => {
    const at = head.indexOf(did);
    return at > 0 && /cdid[^]{1,2}$/.test(head.slice(Math.max(0, at - 6), at));
  });
}

/** The account that the commit of an archive names. */
async function committedAccount(bytes) {
  const { result, refusal } = await work.ask({ form: "repository" }, bytes);
  return (result ?? refusal).did;
}

/** Finds the key of an account, and verifies the last input again. */
function lookUpKey(did) {
  const { bytes, name, given } = last;
  startLookUp({ did, isKeyOnly: true }, () => verify(bytes, name, { ...given, did }));
}

/** Keeps an identity for later inputs; returns whether the handle leads to the account too. */
function remember(form, result, handle) {
  if (!result) return false;
  const isConfirmed = handle !== undefined && handle === result.handle?.toLowerCase();
  // A log proves, a document only states.
  if (form === "document" && known.get(result.did)?.source === "log") return isConfirmed;
  if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value);
  known.set(result.did, { ...result, source: form, isConfirmed });
  return isConfirmed;
}

function working(form, read, all) {
  document.body.classList.add("busy");
  byId("working").hidden = false;
  byId("bar").value = all > 0 ? read / all : 0;
  byId("bar-text").textContent = workingText(form, read, all);
}

function done() {
  document.body.classList.remove("busy");
  byId("working").hidden = true;
}

function show({ cards, said }) {
  document.body.classList.add("has-result");
  byId("result").replaceChildren(...cards);
  announce(said);
  byId("result").focus({ preventScroll: true });
  byId("result").scrollIntoView({ block: "start" });
}

function showFault(fault) {
  const text = document.createElement("p");
  text.className = "card";
  text.textContent = bounded(`This failed, and it is a fault of the page, not of the input: ${fault.message}`, 400);
  byId("result").replaceChildren(text);
  announce(text.textContent);
}

/** Opens a file, or several with messages as one after the other. */
async function openFiles(files) {
  if (files.length === 0) return;
  const size = [...files].reduce((sum, file) => sum + file.size, 0);
  if (size > MAX_FILE) {
    announce("The file is too large.");
    showFault(new Error(`${byteSize(size)}; this page takes up to ${byteSize(MAX_FILE)}`));
    return;
  }
  const inputs = await Promise.all([...files].map(async (file) => ({ name: bounded(file.name, 80), bytes: new Uint8Array(await file.arrayBuffer()) })));
  if (inputs.length === 1) return verify(inputs[0].bytes, inputs[0].name);
  const others = inputs.filter(({ bytes }) => formOf(bytes) !== "frame");
  if (others.length > 0) {
    showFault(new Error(`several files are opened together only if all are firehose frames, and ${others[0].name} is not`));
    return;
  }
  inputs.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  await verify(joined(inputs.map(({ bytes }) => bytes)), `${inputs.length} files`);
}

/** One file of the messages of several: their number, and each after its length. */
function joined(files) {
  const messages = files.flatMap((bytes) => {
    const places = messagesIn(bytes);
    return places.length === 0 ? [bytes] : places.map(([at, length]) => bytes.subarray(at, at + length));
  });
  const all = new Uint8Array(messages.reduce((sum, message) => sum + 4 + message.length, 4));
  const view = new DataView(all.buffer);
  view.setUint32(0, messages.length);
  let at = 4;
  for (const message of messages) {
    view.setUint32(at, message.length);
    all.set(message, at + 4);
    at += 4 + message.length;
  }
  return all;
}

/** Takes text that was pasted or entered. */
function openText(text) {
  const read = readPasted(text);
  if (read.name) startLookUp(read.name);
  else if (read.bytes?.length > 0) verify(read.bytes, "pasted text");
  else announce("Neither a handle, DID or at:// URI, nor data.");
  return read.name !== undefined || read.bytes?.length > 0;
}

function startLookUp(name, then) {
  const verifyIdentity = async (form, bytes, { did, handle }) => {
    await verify(bytes, `the ${form} of ${did}`, { did, handle });
    return known.get(did) ?? null;
  };
  const showData = then ?? ((bytes, given) => verify(bytes, given.did, given));
  lookUp({ name, directory: byId("directory").value, verifyIdentity, showData }).catch(showFault);
}

function connect() {
  const drop = byId("drop");
  const over = (event, isOver) => {
    event.preventDefault();
    drop.classList.toggle("over", isOver);
  };
  document.addEventListener("dragover", (event) => over(event, true));
  document.addEventListener("dragleave", (event) => over(event, false));
  document.addEventListener("drop", (event) => {
    over(event, false);
    openFiles(event.dataTransfer.files);
  });
  document.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    const isData = /^\s*[[{]/.test(text);
    if (event.target.closest?.("input") && !(event.target.id === "name" && isData)) return;
    if (event.clipboardData.files.length > 0) openFiles(event.clipboardData.files);
    else if (openText(text)) event.preventDefault();
  });
  byId("file").addEventListener("change", (event) => {
    openFiles([...event.target.files]);
    event.target.value = "";
  });
  byId("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const isOpened = openText(byId("name").value);
    byId("name").setAttribute("aria-invalid", String(!isOpened));
  });
  byId("again").addEventListener("click", () => last && verify(last.bytes, last.name, last.given));
  byId("stop").addEventListener("click", () => {
    current += 1;
    work.stop();
    done();
    announce("Stopped.");
  });
  byId("theme").addEventListener("change", (event) => {
    if (event.target.value === "") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = event.target.value;
  });
  addEventListener("load", () => setTimeout(() => work.start(), 50));
}

connect();
