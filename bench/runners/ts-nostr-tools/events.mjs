/**
 * How fast is nostr-tools, which most web clients of Nostr are written with? It has no JSON of its own: its users
 * call JSON.parse and JSON.stringify, as it does itself.
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

/** Events as they come from the wire have no verdict yet that `verifyEvent` would remember. */
export const VALIDATE = {
	json: (bytes) => verifyEvent(decode(bytes)),
	'json/pure': (bytes) => verifyPurely(decode(bytes)),
};

/** By what it calls fake JSON, which looks for the field's name. All that is looked for is ASCII. */
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
	// What a package exports may leave out its package.json.
	const url = new URL(`node_modules/${name}/package.json`, import.meta.url);
	return JSON.parse(readFileSync(url, 'utf8')).version;
}
