/**
 * Turns the JavaScript peer into a runner: speaks the protocol of ../PROTOCOL.md, splits the corpus, holds
 * the clock and adds up the counts. What the peer itself does is in sigs.mjs.
 */

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

import * as sigs from './sigs.mjs';

const TOLD_REFUSALS = 5;
const CURVES = ['p256', 'k256'];

/** @type {{ curve: string, length: number, check: sigs.Check }[] | undefined} */
let loaded;

for await (const line of createInterface({ input: process.stdin })) {
	let answer;
	try {
		answer = await obey(JSON.parse(line));
	} catch (fault) {
		answer = { error: String(fault) };
	}
	process.stdout.write(JSON.stringify(answer) + '\n');
}

async function obey(request) {
	switch (request.cmd) {
		case 'describe':
			return describe();
		case 'load':
			return load(request);
		case 'prove':
			return { counts: await prove(ready()) };
		case 'pass':
			return { ns: await pass(ready()) };
		default:
			throw new Error(`unknown request ${request.cmd}`);
	}
}

function describe() {
	const checks = Object.entries(sigs.VARIANTS).map(([name, variant]) => [name, variant.checks]);
	return {
		engine: sigs.ENGINE,
		version: sigs.VERSION,
		language: 'typescript',
		tasks: { sigs: Object.fromEntries(checks) },
	};
}

function load({ task, variant, files }) {
	if (task !== 'sigs' || !Object.hasOwn(sigs.VARIANTS, variant)) {
		throw new Error(`no variant ${variant} of task ${task} here`);
	}
	const { prepare } = sigs.VARIANTS[variant];
	loaded = files.flatMap(readCommits).map(({ curve, commit, point }) => ({
		curve,
		length: commit.length,
		check: prepared(prepare, curve, commit, point),
	}));
	return { units: loaded.length, bytes: loaded.reduce((sum, unit) => sum + unit.length, 0) };
}

/** What cannot be prepared is refused each time. */
function prepared(prepare, curve, commit, point) {
	try {
		return prepare(curve, commit, point);
	} catch (refusal) {
		return () => {
			throw refusal;
		};
	}
}

function ready() {
	if (loaded === undefined) {
		throw new Error('nothing is loaded');
	}
	return loaded;
}

async function prove(units) {
	const counts = { commits: units.length, valid_k256: 0, valid_p256: 0, invalid: 0, errors: 0 };
	for (const [index, { curve, check }] of units.entries()) {
		try {
			counts[(await check()) ? `valid_${curve}` : 'invalid'] += 1;
		} catch (refusal) {
			if (++counts.errors <= TOLD_REFUSALS) {
				console.error(`commit ${index} refused: ${refusal}`);
			}
		}
	}
	return counts;
}

async function pass(units) {
	const start = process.hrtime.bigint();
	for (const { check } of units) {
		try {
			// Where anyone could read it, so that the engine cannot leave out the making of it.
			globalThis.lastVerdict = await check();
		} catch {
			// Counted by `prove`.
		}
	}
	return Number(process.hrtime.bigint() - start);
}

/** [u32 BE count], then [u8 curve][u16 BE length][commit][u16 BE length][key] for each. */
function readCommits(path) {
	const file = readFileSync(path);
	const commits = [];
	let offset = 4;
	const piece = () => {
		const start = offset + 2;
		offset = start + file.readUInt16BE(offset);
		if (offset > file.length) {
			throw new Error(`${path}: ends inside a commit`);
		}
		return new Uint8Array(file.buffer, file.byteOffset + start, offset - start);
	};
	for (let left = file.readUInt32BE(0); left > 0; left--) {
		const curve = CURVES[file.readUInt8(offset++)];
		commits.push({ curve, commit: piece(), point: piece() });
	}
	if (offset !== file.length) {
		throw new Error(`${path}: bytes after the last commit`);
	}
	return commits;
}
