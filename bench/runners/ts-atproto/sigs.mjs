/**
 * Verifies commits with the reference SDK of TypeScript: @atproto/lex-cbor decodes a commit and encodes it
 * again without its signature, as @atproto/repo's verifyCommitSig does, and @atproto/crypto verifies by noble.
 *
 * The plugin of the curve is called directly: the SDK's verifySignature reads the point twice.
 */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import { formatDidKey, p256Plugin, parseDidKey, secp256k1Plugin } from '@atproto/crypto';
import { decode, encode } from '@atproto/lex-cbor';
import { p256 } from '@noble/curves/p256';
import { secp256k1 } from '@noble/curves/secp256k1';
import { sha256 } from '@noble/hashes/sha256';

/**
 * The measured work of a unit, made at load.
 * @typedef {() => boolean | Promise<boolean>} Check
 */

/**
 * No `strict-cbor`: keys in any order and text that is not UTF-8 are accepted.
 * @type {Record<string, { checks: string[], prepare: (curve: string, commit: Uint8Array, point: Uint8Array) => Check }>}
 */
export const VARIANTS = {
	full: { checks: ['low-s'], prepare: prepareFull },
	crypto: { checks: ['low-s'], prepare: prepareCrypto },
	preparsed: { checks: ['low-s'], prepare: preparePreparsed },
};

const PLUGINS = { p256: p256Plugin, k256: secp256k1Plugin };
const CURVES = { p256, k256: secp256k1 };

export const VERSION = versionOf('@atproto/crypto');
export const ENGINE =
	`@atproto/crypto ${VERSION} (@noble/curves ${versionOf('@noble/curves')}), ` +
	`@atproto/lex-cbor ${versionOf('@atproto/lex-cbor')}`;

function prepareFull(curve, commit, point) {
	const plugin = PLUGINS[curve];
	const key = formatDidKey(plugin.jwtAlg, point);
	return () => {
		const { sig, ...rest } = decode(commit);
		return plugin.verifySignature(key, encode(rest), sig);
	};
}

function prepareCrypto(curve, commit, point) {
	const plugin = PLUGINS[curve];
	const key = formatDidKey(plugin.jwtAlg, point);
	const { message, signature } = cutSignature(commit);
	return () => plugin.verifySignature(key, message, signature);
}

/**
 * The steps of the plugin after it has the key's bytes. noble has no type for a parsed key; an uncompressed point
 * avoids the square root.
 */
function preparePreparsed(curve, commit, point) {
	const { keyBytes } = parseDidKey(formatDidKey(PLUGINS[curve].jwtAlg, point));
	const { message, signature } = cutSignature(commit);
	const options = { format: 'compact', lowS: true };
	return () => CURVES[curve].verify(signature, sha256(message), keyBytes, options);
}

/** Splits a canonical commit: the message is the same map without the entry `sig`. */
function cutSignature(commit) {
	const start = Buffer.from(commit.buffer, commit.byteOffset, commit.length).indexOf(SIG_KEY);
	const end = start + SIG_KEY.length + SIG_LEN;
	if (start < 0 || end > commit.length) {
		throw new Error('a commit holds a signature of 64 bytes');
	}
	const message = new Uint8Array(commit.length - (end - start));
	message.set(commit.subarray(0, start));
	message.set(commit.subarray(end), start);
	message[0] -= 1;
	return { message, signature: commit.slice(end - SIG_LEN, end) };
}

/**
 * The key `sig` and the head of 64 bytes. It ends in `@`, which no DID holds, so nothing before it in a
 * commit can be mistaken for it.
 */
const SIG_KEY = Buffer.from('\x63sig\x58\x40', 'latin1');
const SIG_LEN = 64;

export function versionOf(name) {
	const { resolve } = createRequire(import.meta.url);
	let dir = dirname(resolve(name === '@noble/curves' ? `${name}/p256` : name));
	while (!dir.endsWith(join('node_modules', name))) {
		dir = dirname(dir);
	}
	return JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')).version;
}
