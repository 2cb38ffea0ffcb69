/**
 * Encodes, decodes and verifies events with nostr-tools, the library of most Nostr web clients. It has no JSON codec:
 * its users call JSON.parse and JSON.stringify, like the library itself.
 */

import { readFileSync } from 'node:fs';

import { getHex64, getInt } from 'nostr-tools/fakejson';
import { verifyEvent as verifyPurely } from 'nostr-tools/pure';
import { setNostrWasm, verifyEvent } from 'nostr-tools/wasm';
import { initNostrWasm } from 'nostr-wasm';

setNostrWasm(await initNostrWasm());

export const VERSION = versionOf('nostr-tools');
export const ENGINE =
	`nostr-tools ${VERSION} on V8's JSON; json by nostr-wasm ${versionOf('nostr-wasm')}, ` +
	`json/pure by @noble/curves ${versionOf('@noble/curves')}`;

/** @param {object} event */
export function encode(event) {
	return Buffer.from(JSON.stringify(event));
}

/** @param {Buffer} bytes */
export function decode(bytes) {
	return JSON.parse(bytes.toString());
}

/** Freshly decoded events have no cached verdict of `verifyEvent`. */
export const VALIDATE = {
	json: (bytes) => verifyEvent(decode(bytes)),
	'json/pure': (bytes) => verifyPurely(decode(bytes)),
};

/** By the library's `fakejson`, which searches for the field's name. All searched names are ASCII. */
export const FIELDS = {
	'json/kind': (bytes) => getInt(bytes.latin1Slice(), 'kind'),
	'json/pubkey': (bytes) => getHex64(bytes.latin1Slice(), 'pubkey'),
	'json/both': both,
	'json/filter': (bytes) => {
		const { kind, pubkey } = both(bytes);
		return kind === 1 && parseInt(pubkey.slice(0, 2), 16) < 0x40;
	},
};

function both(bytes) {
	const text = bytes.latin1Slice();
	return { kind: getInt(text, 'kind'), pubkey: getHex64(text, 'pubkey') };
}

function versionOf(name) {
	// The exports of a package may not include its package.json.
	const url = new URL(`node_modules/${name}/package.json`, import.meta.url);
	return JSON.parse(readFileSync(url, 'utf8')).version;
}
