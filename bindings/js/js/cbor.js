/** DAG-CBOR: the module checks every rule, and JavaScript makes the objects. */

import { call, bytesOf, WireproofError } from './error.js';
import { Cid } from './cid.js';
import { check_cbor } from './wasm/wireproof.js';

/** A float without a fraction: as a number it would be encoded as an integer. */
export class CborFloat {
	constructor(value) {
		this.value = value;
	}

	valueOf() {
		return this.value;
	}

	toJSON() {
		return this.value;
	}
}

export function cborDecode(bytes) {
	const input = bytesOf(bytes, 'bytes');
	call(() => check_cbor(input));
	return new Reader(input).value();
}

/** Reads items that are known to be canonical. */
export class Reader {
	/** Text of the bytes from `windowAt` on, one character a byte: short texts that are ASCII are parts of it. */
	window = '';
	windowAt = 0;

	constructor(bytes, at = 0) {
		this.bytes = bytes;
		this.at = at;
	}

	value() {
		const head = this.bytes[this.at++];
		const low = head & 31;
		switch (head >> 5) {
			case 0:
				return low < 24 ? low : this.number(low);
			case 1:
				return this.negative(low);
			case 2:
				return this.byteString(low < 24 ? low : this.number(low));
			case 3:
				return this.text(low < 24 ? low : this.number(low));
			case 4:
				return this.array(low < 24 ? low : this.number(low));
			case 5:
				return this.map(low < 24 ? low : this.number(low));
			case 6:
				return this.link();
			default:
				return this.simple(low);
		}
	}

	/** The number after a head whose low bits are from 24 to 27. */
	number(low) {
		const { bytes } = this;
		let at = this.at;
		this.at += 1 << (low - 24);
		switch (low) {
			case 24:
				return bytes[at];
			case 25:
				return (bytes[at] << 8) | bytes[at + 1];
			case 26:
				return four(bytes, at);
			default: {
				const high = four(bytes, at);
				const rest = four(bytes, at + 4);
				return high < 0x200000 ? high * 0x100000000 + rest : (BigInt(high) << 32n) | BigInt(rest);
			}
		}
	}

	negative(low) {
		const number = low < 24 ? low : this.number(low);
		if (typeof number === 'bigint') {
			return -1n - number;
		}
		return number < Number.MAX_SAFE_INTEGER ? -1 - number : -1n - BigInt(number);
	}

	byteString(length) {
		const start = this.at;
		this.at += length;
		return viewOf(this.bytes, start, length);
	}

	text(length) {
		const { bytes, at: start } = this;
		const end = start + length;
		this.at = end;
		if (length > MAX_SHORT_TEXT || !isAscii(bytes, start, end)) {
			return longText(bytes, start, end);
		}
		if (start < this.windowAt || end > this.windowAt + this.window.length) {
			this.windowAt = start;
			this.window = characters(bytes, start, Math.min(bytes.length, start + WINDOW_LEN));
		}
		return this.window.slice(start - this.windowAt, end - this.windowAt);
	}

	/** A name of a map: nearly all are names that came before. */
	key(length) {
		const start = this.at;
		if (length === 0 || length > MAX_NAME) {
			return this.text(length);
		}
		const { bytes } = this;
		this.at += length;
		const slot = (length * 37 + bytes[start] * 5 + bytes[this.at - 1] * 11 + bytes[start + (length >> 1)]) & (NAMES.length - 1);
		const known = NAMES[slot];
		if (known !== undefined && isAt(known.bytes, bytes, start, length)) {
			return known.text;
		}
		const text = longText(bytes, start, this.at);
		NAMES[slot] = { bytes: bytes.slice(start, this.at), text };
		return text;
	}

	array(length) {
		const items = new Array(length);
		for (let at = 0; at < length; at++) {
			items[at] = this.value();
		}
		return items;
	}

	map(length) {
		if (length === 2 && isName(this.bytes, this.at, E)) {
			return this.treeNode();
		}
		return (length === 4 ? this.treeEntry() : undefined) ?? this.entries({}, length);
	}

	/** Adds entries to a map. */
	entries(map, count) {
		for (let at = 0; at < count; at++) {
			const head = this.bytes[this.at++];
			const low = head & 31;
			const key = this.key(low < 24 ? low : this.number(low));
			if (key === '__proto__') {
				const value = this.value();
				Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
			} else {
				map[key] = this.value();
			}
		}
		return map;
	}

	/** An entry of a tree, in its usual form; most maps of a frame are entries. The form is read without calls. */
	treeEntry() {
		const { bytes } = this;
		let at = this.at;
		if (!isName(bytes, at, K)) {
			return undefined;
		}
		let length = bytes[at + 2] - 0x40;
		at += 3;
		if (length < 0 || length > 24) {
			return undefined;
		}
		if (length === 24) {
			length = bytes[at++];
		}
		const start = at;
		at += length;
		let p = bytes[at + 2];
		if (!isName(bytes, at, P) || p > 24) {
			return undefined;
		}
		at += 3;
		if (p === 24) {
			p = bytes[at++];
		}
		if (!isName(bytes, at, T)) {
			return undefined;
		}
		const tree = at + 2;
		at = bytes[tree] === NULL ? tree + 1 : tree + LINK_LEN;
		if (!(at === tree + 1 || isLink(bytes, tree)) || !isName(bytes, at, V) || !isLink(bytes, at + 2)) {
			return undefined;
		}
		this.at = at + 2 + LINK_LEN;
		const t = at === tree + 1 ? null : linkAt(bytes, tree);
		return { k: viewOf(bytes, start, length), p, t, v: linkAt(bytes, at + 2) };
	}

	/** A map of two entries, of which the first is `e`: a node of a tree. */
	treeNode() {
		this.at += 2;
		const e = this.value();
		if (!isName(this.bytes, this.at, L)) {
			return this.entries({ e }, 1);
		}
		this.at += 2;
		return { e, l: this.value() };
	}

	/** Tag 42 and a byte string of a zero and a CID. */
	link() {
		this.at += 1;
		const low = this.bytes[this.at++] & 31;
		const length = low < 24 ? low : this.number(low);
		const start = this.at + 1;
		this.at += length;
		return new Cid(this.bytes, start, this.at);
	}

	simple(low) {
		if (low === 27) {
			const value = new DataView(this.bytes.buffer, this.bytes.byteOffset + this.at, 8).getFloat64(0);
			this.at += 8;
			return Number.isInteger(value) ? new CborFloat(value) : value;
		}
		return low === 22 ? null : low === 21;
	}
}

function four(bytes, at) {
	return ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0;
}

/** Whether the bytes of a name are at a place. */
function isAt(name, bytes, start, length) {
	if (name.length !== length) {
		return false;
	}
	for (let at = 0; at < length; at++) {
		if (name[at] !== bytes[start + at]) {
			return false;
		}
	}
	return true;
}

/** Whether a name of one letter is at a place. */
function isName(bytes, at, letter) {
	return bytes[at] === 0x61 && bytes[at + 1] === letter;
}

/** Whether a link to a block of version 1 with SHA-256 is at a place. */
function isLink(bytes, at) {
	return bytes[at] === 0xd8 && bytes[at + 2] === 0x58 && bytes[at + 3] === 37;
}

function linkAt(bytes, at) {
	return new Cid(bytes, at + 5, at + LINK_LEN);
}

const [E, K, L, P, T, V] = [0x65, 0x6b, 0x6c, 0x70, 0x74, 0x76];
const NULL = 0xf6;

/** Tag 42, the head of 37 bytes, a zero and the CID. */
const LINK_LEN = 41;

/** A view of a part; `subarray` takes half as long again. */
function viewOf(bytes, start, length) {
	return new Uint8Array(bytes.buffer, bytes.byteOffset + start, length);
}

function isAscii(bytes, start, end) {
	for (let at = start; at < end; at++) {
		if (bytes[at] > 0x7f) {
			return false;
		}
	}
	return true;
}

/** Text that is known to be UTF-8. Node.js decodes a part of an array without a view of it. */
function longText(bytes, start, end) {
	return UTF8_SLICE ? UTF8_SLICE.call(bytes, start, end) : DECODER.decode(bytes.subarray(start, end));
}

/** A character for each byte, of which those of ASCII are right. */
function characters(bytes, start, end) {
	return LATIN1_SLICE ? LATIN1_SLICE.call(bytes, start, end) : LATIN1.decode(bytes.subarray(start, end));
}

const UTF8_SLICE = globalThis.Buffer?.prototype.utf8Slice;
const LATIN1_SLICE = globalThis.Buffer?.prototype.latin1Slice;
const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });
const LATIN1 = new TextDecoder('latin1');

/** A part of a text keeps the whole text in memory, so windows are short. */
const WINDOW_LEN = 256;
const MAX_SHORT_TEXT = 128;
const MAX_NAME = 24;

/** The last name of each slot: a cache, which changes no result. */
const NAMES = new Array(512).fill(undefined);

export function cborEncode(value) {
	const writer = new Writer();
	writer.value(value, 0);
	return writer.finish();
}

/** Appends items in canonical form. */
class Writer {
	#bytes = new Uint8Array(256);
	#view = new DataView(this.#bytes.buffer);
	#length = 0;

	finish() {
		return this.#bytes.slice(0, this.#length);
	}

	value(value, depth) {
		switch (typeof value) {
			case 'string':
				return this.#text(value);
			case 'number':
				return this.#number(value);
			case 'bigint':
				return this.#bigint(value);
			case 'boolean':
				return this.#byte(value ? 0xf5 : 0xf4);
			case 'object':
				return this.#object(value, depth);
			default:
				throw unencodable(`a ${typeof value} has no form in DAG-CBOR`);
		}
	}

	#object(value, depth) {
		if (value === null) {
			this.#byte(0xf6);
		} else if (value instanceof Uint8Array) {
			this.#head(2, value.length);
			this.#append(value);
		} else if (value instanceof Cid) {
			this.#byte(0xd8);
			this.#byte(42);
			this.#head(2, value.bytes.length + 1);
			this.#byte(0);
			this.#append(value.bytes);
		} else if (value instanceof CborFloat) {
			this.#float(value.value);
		} else if (depth >= MAX_DEPTH) {
			throw unencodable(`nested deeper than ${MAX_DEPTH} levels`);
		} else if (Array.isArray(value)) {
			this.#head(4, value.length);
			for (let at = 0; at < value.length; at++) {
				this.value(value[at], depth + 1);
			}
		} else {
			this.#map(value, depth);
		}
	}

	#map(value, depth) {
		const prototype = Object.getPrototypeOf(value);
		if (prototype !== null && prototype !== Object.prototype && Object.getPrototypeOf(prototype) !== null) {
			throw unencodable(`an object of the class ${prototype.constructor?.name} has no form in DAG-CBOR`);
		}
		const entries = Object.entries(value).filter(([, item]) => item !== undefined);
		const encoded = entries.map(([key, item]) => [utf8(key), item]);
		encoded.sort(([a], [b]) => compareKeys(a, b));
		this.#head(5, encoded.length);
		for (const [key, item] of encoded) {
			this.#head(3, key.length);
			this.#append(key);
			this.value(item, depth + 1);
		}
	}

	#text(text) {
		const bytes = utf8(text);
		this.#head(3, bytes.length);
		this.#append(bytes);
	}

	#number(number) {
		if (!Number.isInteger(number)) {
			this.#float(number);
		} else if (!Number.isSafeInteger(number)) {
			throw unencodable('an integer beyond 2^53 - 1 must be a bigint');
		} else if (Object.is(number, -0)) {
			throw unencodable('a float must be finite and not negative zero');
		} else if (number >= 0) {
			this.#head(0, number);
		} else {
			this.#head(1, -1 - number);
		}
	}

	#bigint(number) {
		const [kind, rest] = number >= 0n ? [0, number] : [1, -1n - number];
		if (rest > 0xffffffffffffffffn) {
			throw unencodable('an integer beyond 64 bits');
		}
		if (rest <= 0xffffffffn) {
			this.#head(kind, Number(rest));
			return;
		}
		this.#byte((kind << 5) | 27);
		this.#reserve(8);
		this.#view.setBigUint64(this.#length, rest);
		this.#length += 8;
	}

	#float(number) {
		if (!Number.isFinite(number) || Object.is(number, -0)) {
			throw unencodable('a float must be finite and not negative zero');
		}
		this.#byte(0xfb);
		this.#reserve(8);
		this.#view.setFloat64(this.#length, number);
		this.#length += 8;
	}

	#head(kind, number) {
		this.#reserve(9);
		const first = kind << 5;
		if (number < 24) {
			this.#bytes[this.#length++] = first | number;
		} else if (number < 0x100) {
			this.#bytes[this.#length++] = first | 24;
			this.#bytes[this.#length++] = number;
		} else if (number < 0x10000) {
			this.#bytes[this.#length] = first | 25;
			this.#view.setUint16(this.#length + 1, number);
			this.#length += 3;
		} else if (number < 0x100000000) {
			this.#bytes[this.#length] = first | 26;
			this.#view.setUint32(this.#length + 1, number);
			this.#length += 5;
		} else {
			this.#bytes[this.#length] = first | 27;
			this.#view.setBigUint64(this.#length + 1, BigInt(number));
			this.#length += 9;
		}
	}

	#byte(byte) {
		this.#reserve(1);
		this.#bytes[this.#length++] = byte;
	}

	#append(bytes) {
		this.#reserve(bytes.length);
		this.#bytes.set(bytes, this.#length);
		this.#length += bytes.length;
	}

	#reserve(length) {
		if (this.#length + length > this.#bytes.length) {
			const grown = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + length));
			grown.set(this.#bytes);
			this.#bytes = grown;
			this.#view = new DataView(grown.buffer);
		}
	}
}

function utf8(text) {
	if (!isWellFormed(text)) {
		throw unencodable('text is not UTF-8');
	}
	return ENCODER.encode(text);
}

/** Whether no half of a pair of surrogates stands alone. */
function isWellFormed(text) {
	return !/[\ud800-\udfff]/u.test(text);
}

/** Shorter first, then by bytes. */
function compareKeys(a, b) {
	if (a.length !== b.length) {
		return a.length - b.length;
	}
	for (let at = 0; at < a.length; at++) {
		if (a[at] !== b[at]) {
			return a[at] - b[at];
		}
	}
	return 0;
}

function unencodable(rule) {
	return new WireproofError({ code: 'dag-cbor', rule, message: rule });
}

const ENCODER = new TextEncoder();

/** Containers inside each other, as in the module. */
const MAX_DEPTH = 127;
