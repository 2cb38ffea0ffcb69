// Input, verification and result: the sequence of the page.
import { announce, bounded, byId, byteSize } from "./dom.js";
import { formOf, readPasted } from "./forms.js";
import { lookUp } from "./requests.js";
import { argumentView, frameView, identityView, nostrView, recordView, refusedView, repositoryView, unknownView, workingText } from "./views.js";
import { Stopped, Work } from "./work.js";

const MAX_FILE = 1 << 30;
const MAX_KNOWN = 64;
const work = new Work();
/** Identities of this visit, by DID. */
const known = new Map();
/** The last input, to be verified again with other options. */
let last = null;
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
  last = { bytes, name, given };
  byId("again").disabled = false;
  const entered = options();
  const path = given.path ?? entered.path;
  const found = formOf(bytes);
  const form = found === "repository" && path ? "record" : found;
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
  const account = did ?? (["repository", "record", "frame"].includes(form) ? await accountOf(form, bytes) : undefined);
  const identity = account && !key ? known.get(account) : undefined;
  const keyOf = key ?? identity?.key ?? undefined;
  // The key of a known account proves data of that account alone.
  const question = { form, did: form === "frame" || form === "nostr" ? undefined : (did ?? identity?.did), key: keyOf, path: form === "record" ? path : undefined, nowMicros: Math.round(Date.now() * 1000) };
  if (turn !== current) throw new Stopped();
  const asked = performance.now();
  const { result, refusal, tables } = await work.ask(question, bytes, (read) => turn === current && working(form, read, bytes.length));
  const took = performance.now() - asked;
  const shared = { form, result, refusal, tables, bytes, name, identity, key: keyOf, did: account, took, ask: (ask, block) => work.ask(ask, block), lookUpKey };
  if (refusal?.code === "argument") return argumentView({ ...shared, account: form === "record" && !keyOf ? await committedAccount(bytes) : undefined });
  if (form === "log" || form === "document") return identityView({ ...shared, isConfirmed: remember(form, result, handle) });
  if (refusal) return refusedView(shared);
  return { repository: repositoryView, record: recordView, frame: frameView, nostr: nostrView }[form](shared);
}

/** The account that an input names, if its identity may be known already: in an archive, by the field `did` of a block. */
async function accountOf(form, bytes) {
  if (known.size === 0) return undefined;
  if (form === "frame") {
    const { result } = await work.ask({ form: "frame", nowMicros: 0 }, bytes);
    return result?.fields.find(([field]) => field === "repo" || field === "did")?.[1];
  }
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

async function openFile(file) {
  if (!file) return;
  if (file.size > MAX_FILE) {
    announce("The file is too large.");
    showFault(new Error(`${byteSize(file.size)}; this page takes up to ${byteSize(MAX_FILE)}`));
    return;
  }
  await verify(new Uint8Array(await file.arrayBuffer()), bounded(file.name, 80));
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
    openFile(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    const isData = /^\s*[[{]/.test(text);
    if (event.target.closest?.("input") && !(event.target.id === "name" && isData)) return;
    const [file] = event.clipboardData.files;
    if (file) openFile(file);
    else if (openText(text)) event.preventDefault();
  });
  byId("file").addEventListener("change", (event) => {
    openFile(event.target.files[0]);
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
