/**
 * The task `decode` with @atcute, a small TypeScript stack.
 *
 * Frames are decoded as in its firehose client, then the CAR reader returns the blocks. That reader does
 * not hash; the verified variant makes the hash call of the library's `CID.create`, without its promise.
 */

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { fromUint8Array } from '@atcute/car';
import { BytesWrapper, decode, decodeFirst, fromBytes } from '@atcute/cbor';
import { CidLinkWrapper, CODEC_DCBOR } from '@atcute/cid';

/**
 * Decodes one frame and passes each block to `emit`: its value, or NOT_DECODED if it is of another codec.
 * @typedef {(frame: Uint8Array, emit: (block: unknown) => void) => void} DecodeFrame
 */

const CHECKS = [
	'key-order',
	'duplicate-keys',
	'minimal-heads',
	'utf8',
	'indefinite-lengths',
	'only-tag-42',
	'link-shape',
	'trailing-bytes',
];

/** @type {Record<string, { checks: string[], decodeFrame: DecodeFrame }>} */
export const VARIANTS = {
	verified: { checks: ['cid-sha256', ...CHECKS], decodeFrame: decodeVerified },
	unverified: { checks: CHECKS, decodeFrame: decodeUnverified },
};

export const VERSION = versionOf('@atcute/cbor');
export const ENGINE =
	`@atcute/cbor ${VERSION}, @atcute/car ${versionOf('@atcute/car')}, @atcute/cid ${versionOf('@atcute/cid')}` +
	', node:crypto per block where verified';

const NOT_DECODED = Symbol('a block of another codec');

function decodeUnverified(frame, emit) {
	for (const { cid, bytes } of blocksOf(frame)) {
		emit(cid.codec === CODEC_DCBOR ? decode(bytes) : NOT_DECODED);
	}
}

function decodeVerified(frame, emit) {
	for (const { cid, bytes } of blocksOf(frame)) {
		if (!hash('sha256', bytes, 'buffer').equals(cid.digest.contents)) {
			throw new Error('a block does not match its CID');
		}
		emit(cid.codec === CODEC_DCBOR ? decode(bytes) : NOT_DECODED);
	}
}

function blocksOf(frame) {
	const [header, rest] = decodeFirst(frame);
	const payload = decode(rest);
	if (header.t === '#commit' || header.t === '#sync') {
		return fromUint8Array(fromBytes(payload.blocks));
	}
	return [];
}

/**
 * The counts that can be provided. A JavaScript number does not record whether it was encoded as a float, so
 * `floats` is omitted and a number is an integer; records of the network have no floats.
 */
export function noCounts() {
	return {
		blocks: 0,
		maps: 0,
		map_entries: 0,
		arrays: 0,
		array_items: 0,
		text_bytes: 0,
		byte_string_bytes: 0,
		links: 0,
		integers: 0,
		booleans: 0,
		nulls: 0,
	};
}

/** Counts the items in a block. Walks without recursion, like the decoder. */
export function count(block, counts) {
	counts.blocks += 1;
	const waiting = [block];
	while (waiting.length > 0) {
		countOne(waiting.pop(), counts, waiting);
	}
}

function countOne(value, counts, waiting) {
	switch (typeof value) {
		case 'string':
			counts.text_bytes += Buffer.byteLength(value);
			break;
		case 'number':
			counts.integers += Number.isInteger(value) ? 1 : 0;
			break;
		case 'boolean':
			counts.booleans += 1;
			break;
		case 'object':
			countObject(value, counts, waiting);
	}
}

function countObject(value, counts, waiting) {
	if (value === null) {
		counts.nulls += 1;
	} else if (value instanceof BytesWrapper) {
		counts.byte_string_bytes += value.buf.length;
	} else if (value instanceof CidLinkWrapper) {
		counts.links += 1;
	} else if (Array.isArray(value)) {
		counts.arrays += 1;
		counts.array_items += value.length;
		for (const item of value) {
			waiting.push(item);
		}
	} else {
		counts.maps += 1;
		for (const [key, item] of Object.entries(value)) {
			counts.map_entries += 1;
			counts.text_bytes += Buffer.byteLength(key);
			waiting.push(item);
		}
	}
}

export function versionOf(name) {
	const url = new URL('../package.json', import.meta.resolve(name));
	return JSON.parse(readFileSync(url, 'utf8')).version;
}
