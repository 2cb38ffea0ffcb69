/** Reads the files of each task, does the work over them and sums up the counts. */

import { readFileSync } from 'node:fs';

import { uncompressed, verifyEvent, verifySchnorr, verifySignature } from './calls.mjs';

/**
 * A task with its corpus in memory.
 * @typedef {{ units: number, bytes: number, prove: () => object, pass: () => void }} Work
 */

/** @type {Record<string, Record<string, { checks: string[], load: (files: string[]) => Work }>>} */
export const TASKS = {
	sigs: {
		crypto: { checks: ['low-s'], load: (files) => signatures(files, (_, point) => point) },
		preparsed: { checks: ['low-s'], load: (files) => signatures(files, uncompressed) },
	},
	schnorr: { verify: { checks: [], load: (files) => events(files, JSON.parse, verifySchnorr) } },
	'nostr-validated': {
		json: { checks: ['trailing-bytes', 'id', 'signature'], load: (files) => events(files, (line) => line, verifyEvent) },
	},
};

/** The task `sigs`: [u32 BE count], then [u8 curve][u16 BE length][commit][u16 BE length][33-byte key] for each. */
function signatures(files, keyOf) {
	const units = files.flatMap((path) => readCommits(path, keyOf));
	const verdictOf = ({ curve, ...unit }) => verdict(() => verifySignature(curve, unit));
	const prove = () => {
		const counts = { commits: units.length, valid_k256: 0, valid_p256: 0, invalid: 0, errors: 0 };
		for (const unit of units) {
			const is = verdictOf(unit);
			counts[is === undefined ? 'errors' : is ? `valid_${unit.curve}` : 'invalid'] += 1;
		}
		return { counts };
	};
	const bytes = units.reduce((sum, { length }) => sum + length, 0);
	return { units: units.length, bytes, prove, pass: () => units.forEach((unit) => keep(verdictOf(unit))) };
}

function readCommits(path, keyOf) {
	const file = readFileSync(path);
	const units = [];
	let at = 4;
	const piece = () => {
		const start = at + 2;
		at = start + file.readUInt16BE(start - 2);
		return new Uint8Array(file.buffer, file.byteOffset + start, at - start);
	};
	for (let left = file.readUInt32BE(0); left > 0; left--) {
		const curve = file[at++] === 0 ? 'p256' : 'k256';
		const commit = piece();
		units.push({ curve, length: commit.length, ...cutSignature(commit), key: keyOf(curve, piece()) });
	}
	return units;
}

/** Splits a canonical commit: the message is the same map without the entry `sig`. */
function cutSignature(commit) {
	const start = Buffer.from(commit.buffer, commit.byteOffset, commit.length).indexOf(SIG_KEY);
	const end = start + SIG_KEY.length + SIG_LEN;
	const message = new Uint8Array(commit.length - (end - start));
	message.set(commit.subarray(0, start));
	message.set(commit.subarray(end), start);
	message[0] -= 1;
	return { message, signature: commit.slice(end - SIG_LEN, end) };
}

const SIG_KEY = Buffer.from('\x63sig\x58\x40', 'latin1');
const SIG_LEN = 64;

/** Events, one a line. */
function events(files, prepare, verify) {
	const lines = files.flatMap((file) => readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => Buffer.from(line)));
	const units = lines.map((line) => prepare(line));
	const verdictOf = (unit) => verdict(() => verify(unit));
	const prove = () => {
		const counts = { events: units.length, valid: 0, invalid: 0, errors: 0 };
		for (const unit of units) {
			const is = verdictOf(unit);
			counts[is === undefined ? 'errors' : is ? 'valid' : 'invalid'] += 1;
		}
		return { counts };
	};
	const bytes = lines.reduce((sum, line) => sum + line.length, 0);
	return { units: units.length, bytes, prove, pass: () => units.forEach((unit) => keep(verdictOf(unit))) };
}

/** The result of a call; nothing if it throws. */
function verdict(work) {
	try {
		return work();
	} catch {
		return undefined;
	}
}

/** Keeps a value reachable, so that the engine cannot remove its computation. */
function keep(value) {
	globalThis.lastValue = value;
}
