// Look-ups: the requests from a handle to a repository. Each one is shown with its address, and sent by a click.
import { bounded, byId, byteSize, el } from "./dom.js";

const MAX_DOCUMENT = 1 << 20;
const MAX_REPOSITORY = 512 << 20;

/** Why a request has no answer, in words for the reader. */
class RequestFault extends Error {}

/** The list of requests of one look-up. */
export class LookUp {
  constructor() {
    Object.assign(this, { list: byId("request-list"), aborter: null });
    this.list.replaceChildren();
    byId("requests").hidden = false;
  }

  /** Offers a request; resolves with the bytes of its answer when the user has sent it and it was answered. */
  offer({ purpose, url, most = MAX_DOCUMENT, label = "Send" }) {
    const input = el("input", { type: "url", spellcheck: "false", "aria-label": `Address: ${purpose}`, value: url });
    const button = el("button", { class: "main" }, label);
    const state = el("p", { class: "small soft", role: "status" });
    const received = el("p", { class: "small soft", "aria-hidden": "true" });
    const form = el("form", { class: "line", novalidate: true }, el("span", { class: "mono" }, "GET"), input, button);
    const item = el("li", {}, el("p", {}, `${this.list.children.length + 1}. ${purpose}`), form, state, received);
    this.list.append(item);
    button.focus();
    return new Promise((resolve) => {
      form.addEventListener("submit", async (event) => {
        event.preventDefault();
        if (this.aborter) {
          this.aborter.abort();
          return;
        }
        item.className = "";
        state.textContent = "Sent; waiting for the answer.";
        button.textContent = "Stop";
        try {
          const bytes = await this.send(input.value, most, (read, all) => {
            received.textContent = `${byteSize(read)}${all ? ` of ${byteSize(all)}` : ""} received`;
          });
          item.className = "done";
          input.readOnly = true;
          button.hidden = true;
          received.remove();
          state.textContent = `Answered: ${byteSize(bytes.length)} from ${new URL(input.value).host}`;
          resolve({ bytes, host: new URL(input.value).host });
        } catch (fault) {
          item.className = "failed";
          received.textContent = "";
          state.textContent = bounded(fault.message, 300);
          button.textContent = "Send again";
        }
      });
    });
  }

  /** One request without cookies, referrer or redirects. */
  async send(address, most, onProgress) {
    const url = safeUrl(address);
    this.aborter = new AbortController();
    try {
      const options = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "error", cache: "no-store", signal: this.aborter.signal };
      const response = await fetch(url, options).catch((fault) => {
        throw new RequestFault(fault.name === "AbortError" ? "Stopped." : "No answer that this page may read. The server may be unreachable, may redirect, or may not allow pages of other origins (CORS).");
      });
      if (!response.ok) throw new RequestFault(`The server answered ${response.status}.`);
      return await readBody(response, most, onProgress);
    } finally {
      this.aborter = null;
    }
  }

  /** A note under the last request. */
  note(text) {
    this.list.append(el("li", { class: "failed" }, el("p", {}, bounded(text, 400))));
  }
}

/** The address, if it is one of HTTPS. */
function safeUrl(address) {
  const url = URL.canParse(address.trim()) ? new URL(address.trim()) : null;
  if (url?.protocol !== "https:") throw new RequestFault("The address must begin with https://.");
  if (url.username !== "" || url.password !== "") throw new RequestFault("The address must not have a user name or password.");
  return url;
}

async function readBody(response, most, onProgress) {
  const all = Number(response.headers.get("content-length")) || 0;
  const parts = [];
  let read = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw new RequestFault("The answer ended early, or was stopped.");
    });
    if (done) break;
    read += value.length;
    if (read > most) {
      await reader.cancel();
      throw new RequestFault(`The answer is longer than ${byteSize(most)}.`);
    }
    parts.push(value);
    onProgress(read, all);
  }
  const bytes = new Uint8Array(read);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The chain from a name to data: `verifyIdentity(form, bytes, given)` proves identities, `showData(bytes, given)` shows data. */
export async function lookUp({ name, directory, verifyIdentity, showData }) {
  const requests = new LookUp();
  let { did } = name;
  let handle;
  if (!did) {
    const { bytes, host } = await requests.offer({ purpose: `Ask ${name.handle} for its DID`, url: `https://${name.handle}/.well-known/atproto-did` });
    // Another host says nothing about the handle.
    handle = host === name.handle ? name.handle : undefined;
    did = new TextDecoder().decode(bytes.subarray(0, 2048)).trim();
    if (!/^did:(plc|web):[a-zA-Z0-9._:%-]+$/.test(did)) {
      requests.note(`The answer is not a DID: ${did.slice(0, 100)}`);
      return;
    }
  }
  const isPlc = did.startsWith("did:plc:");
  const url = isPlc ? `${directory.replace(/\/+$/, "")}/${did}/log/audit` : documentUrl(did);
  const { bytes } = await requests.offer({ purpose: isPlc ? `Ask the directory for the log of ${did}` : `Ask the server for the document of ${did}`, url });
  const identity = await verifyIdentity(isPlc ? "log" : "document", bytes, { did, handle });
  if (identity === null) return;
  if (name.isKeyOnly) {
    await showData();
    return;
  }
  if (!identity.host) {
    requests.note("The identity names no server.");
    return;
  }
  const [collection, rkey] = name.path?.split("/") ?? [];
  const query = name.path ? `com.atproto.sync.getRecord?did=${encodeURIComponent(did)}&collection=${encodeURIComponent(collection)}&rkey=${encodeURIComponent(rkey)}` : `com.atproto.sync.getRepo?did=${encodeURIComponent(did)}`;
  const answer = await requests.offer({ purpose: name.path ? "Ask its server for the proof of the record" : "Ask its server for the repository", url: `${identity.host.replace(/\/+$/, "")}/xrpc/${query}`, most: MAX_REPOSITORY });
  await showData(answer.bytes, { did, path: name.path });
}

/** The address of the document of a did:web. */
function documentUrl(did) {
  return `https://${decodeURIComponent(did.slice("did:web:".length).split(":")[0])}/.well-known/did.json`;
}

