// The form of an input, from its first bytes; and pasted text as bytes.

/** `repository`, `frame`, `nostr`, `log`, `document`, `states` or `unknown`. The verification decides what it is. */
export function formOf(bytes) {
  const start = bytes[0] === 0xef && bytes[1] === 0xbb ? 3 : 0;
  let at = start;
  while (at < bytes.length && at < start + 4096 && bytes[at] <= 0x20) at += 1;
  if (bytes[at] === 0x7b || bytes[at] === 0x5b) return formOfJson(textAt(bytes, at, 65536));
  if (isFrame(bytes) || messagesIn(bytes).length > 0) return "frame";
  return isArchive(bytes) ? "repository" : "unknown";
}

/** A frame begins with a map that has `op`. */
function isFrame(bytes) {
  const head = bytes[0];
  if (head < 0xa1 || head > 0xa4) return false;
  return textAt(bytes, 0, 40).includes("bop") || textAt(bytes, 0, 40).includes("at");
}

/** Offset and length of every frame of a file with several: their number, and the length of each before it, in 4 bytes. */
export function messagesIn(bytes) {
  if (bytes.length < 12 || !isFrame(bytes.subarray(8, 48))) return [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const count = view.getUint32(0);
  const places = [];
  let at = 4;
  while (places.length < count && at + 4 <= bytes.length) {
    const length = view.getUint32(at);
    places.push([at + 4, length]);
    at += 4 + length;
  }
  return at === bytes.length && places.length === count ? places : [];
}

/** An archive begins with the length of a map that has `roots` and `version`. */
function isArchive(bytes) {
  const head = textAt(bytes, 0, 200);
  return head.includes("eroots") || head.includes("gversion");
}

function formOfJson(text) {
  if (/^\{\s*"(accounts|version)"\s*:/.test(text)) return "states";
  if (/^\{[^]*"(verificationMethod|@context)"/.test(text)) return "document";
  if (/"(rotationKeys|plc_operation|plc_tombstone|recoveryKey|nullified)"/.test(text)) return "log";
  if (/"(pubkey|sig|kind|tags)"/.test(text)) return "nostr";
  return /^\[/.test(text) ? "log" : "nostr";
}

function textAt(bytes, from, length) {
  return new TextDecoder("utf-8").decode(bytes.subarray(from, from + length));
}

/** The name of a form. */
export function nameOfForm(form) {
  return { repository: "repository", record: "record proof", range: "proof of collections", frame: "firehose messages", states: "states of accounts", nostr: "Nostr events", log: "DID log", document: "DID document" }[form];
}

/** Pasted text as an input: `{name}` for a handle, DID or URI; `{bytes}` for data; `{}` otherwise. */
export function readPasted(pasted) {
  const text = pasted.trim();
  if (text === "") return {};
  if (/^[[{]/.test(text)) return { bytes: new TextEncoder().encode(text) };
  if (text.length <= 2048 && nameIn(text)) return { name: nameIn(text) };
  const plain = text.replace(/\s+/g, "");
  if (/^([0-9a-f]{2})+$/i.test(plain) && plain.length >= 16) return { bytes: fromHex(plain) };
  return /^[A-Za-z0-9+/_-]+=*$/.test(plain) && plain.length >= 16 ? { bytes: fromBase64(plain) } : {};
}

/** A handle, DID or at:// URI: `{handle}` or `{did}`, and `path` of a record. */
export function nameIn(text) {
  const [, authority, rest] = /^(?:at:\/\/)?@?([^/?#]+)(?:\/([^?#]*))?$/.exec(text) ?? [];
  if (authority === undefined) return null;
  const path = rest && /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._:~-]+$/.test(rest) ? rest : undefined;
  if (rest && path === undefined) return null;
  if (/^did:(plc|web):[a-zA-Z0-9._:%-]+$/.test(authority)) return { did: authority, path };
  const handle = authority.toLowerCase();
  return isHandle(handle) ? { handle, path } : null;
}

function isHandle(text) {
  return text.length <= 253 && /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text);
}

function fromHex(text) {
  return Uint8Array.from({ length: text.length / 2 }, (_, at) => Number.parseInt(text.slice(2 * at, 2 * at + 2), 16));
}

/** Bytes from base64; none if it is not. */
export function fromBase64(text) {
  try {
    const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
    return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
