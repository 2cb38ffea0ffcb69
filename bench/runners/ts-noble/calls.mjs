/**
 * Verifies signatures with @noble/curves, which most packages of JavaScript sign and verify with: single calls of `verify`, as its
 * documentation shows them. It has no type for a parsed key and no batches; an uncompressed point saves the square root.
 */

import { readFileSync } from 'node:fs';

import { p256 } from '@noble/curves/nist.js';
import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';

export const VERSION = versionOf('@noble/curves');
export const ENGINE = `@noble/curves ${VERSION}, @noble/hashes ${versionOf('@noble/hashes')}`;

const CURVES = { p256, k256: secp256k1 };

/** A message is hashed once, by `verify`. High S is refused on both curves, as the protocol requires. */
export function verifySignature(curve, { message, signature, key }) {
	return CURVES[curve].verify(signature, message, key, { prehash: true, lowS: true, format: 'compact' });
}

export function uncompressed(curve, point) {
	return CURVES[curve].Point.fromBytes(point).toBytes(false);
}

/** The signature of an event over the id that it states. */
export function verifySchnorr({ id, pubkey, sig }) {
	return schnorr.verify(hexToBytes(sig), hexToBytes(id), hexToBytes(pubkey));
}

/** An event from its JSON: its id and its signature. */
export function verifyEvent(bytes) {
	const event = JSON.parse(bytes.toString());
	const { id, pubkey, created_at, kind, tags, content } = event;
	const hash = sha256(utf8ToBytes(JSON.stringify([0, pubkey, created_at, kind, tags, content])));
	return bytesToHex(hash) === id && verifySchnorr(event);
}

function versionOf(name) {
	return JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8')).version;
}
