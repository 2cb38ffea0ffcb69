/**
 * Loads, does and counts the work of each task. The calls of the peer are in events.mjs.
 *
 * @typedef {{ units: number, bytes: number, prove: () => object, pass: () => object }} Work
 */

import { readFileSync } from 'node:fs';

import { decode, encode, FIELDS, VALIDATE } from './events.mjs';

const CHUNK = 20;
const SIZES = [1, 10, 100, 1000];
const TOLD_REFUSALS = 5;

const READ = { json: ['trailing-bytes'] };

/** The checks of each variant of each task. */
export const TASKS = {
	'nostr-serialize': { json: [] },
	'nostr-deserialize': READ,
	'nostr-validated': Object.fromEntries(
		Object.keys(VALIDATE).map((name) => [name, ['trailing-bytes', 'id', 'signature']]),
	),
	'nostr-fields': Object.fromEntries(Object.keys(FIELDS).map((name) => [name, []])),
	'nostr-by-kind': READ,
	'nostr-by-category': READ,
	'nostr-batch': READ,
};

/** @returns {Work} */
export function load(task, variant, files) {
	const groups = readGroups(files);
	const lines = groups.flatMap((group) => group.lines);
	const size = { units: lines.length, bytes: sum(lines.map((line) => line.length)) };
	switch (task) {
		case 'nostr-serialize':
			return { ...size, ...writing(lines.map(decode)) };
		case 'nostr-deserialize':
			return { ...size, ...reading(lines) };
		case 'nostr-validated':
			return { ...size, ...validating(lines, VALIDATE[variant]) };
		case 'nostr-fields':
			return { ...size, ...asking(lines, variant) };
		case 'nostr-batch':
			return { ...size, ...batches(lines) };
		default:
			return { ...size, ...grouped(groups, lines) };
	}
}

function writing(events) {
	const chunks = inPieces(events, CHUNK);
	return {
		prove: () => {
			const bytes = sum(events.map((event) => encode(event).length));
			return { counts: { events: events.length, errors: 0, bytes } };
		},
		pass: () => ({ chunks_ns: timeEach(chunks, encode) }),
	};
}

function reading(lines) {
	const chunks = inPieces(lines, CHUNK);
	return {
		prove: () => ({ counts: tally(lines, (line) => [decode(line)]) }),
		pass: () => ({ chunks_ns: timeEach(chunks, decode) }),
	};
}

function validating(lines, validate) {
	const chunks = inPieces(lines, CHUNK);
	return {
		prove: () => {
			const counts = { events: lines.length, valid: 0, invalid: 0, errors: 0 };
			eachTold(lines, validate, (verdict) => {
				counts[verdict === undefined ? 'errors' : verdict ? 'valid' : 'invalid'] += 1;
			});
			return { counts };
		},
		pass: () => ({ chunks_ns: timeEach(chunks, validate) }),
	};
}

function asking(lines, variant) {
	const read = FIELDS[variant];
	return {
		prove: () => ({ counts: { events: lines.length, ...sums(variant, lines.map((line) => read(line))) } }),
		pass: () => {
			each(lines, read);
			return {};
		},
	};
}

function sums(variant, answers) {
	switch (variant) {
		case 'json/kind':
			return { kinds: sum(answers) };
		case 'json/pubkey':
			return { pubkeys: sumOfKeys(answers) };
		case 'json/both':
			return {
				kinds: sum(answers.map(({ kind }) => kind)),
				pubkeys: sumOfKeys(answers.map(({ pubkey }) => pubkey)),
			};
		default:
			return { matched: answers.filter(Boolean).length };
	}
}

/** The sum of their first four bytes. */
function sumOfKeys(pubkeys) {
	return sum(pubkeys.map((pubkey) => parseInt(pubkey.slice(0, 8), 16))) % 2 ** 32;
}

function sum(numbers) {
	return numbers.reduce((sum, number) => sum + number, 0);
}

function grouped(groups, lines) {
	return {
		...reading(lines),
		pass: () => ({
			stages_ns: Object.fromEntries(
				groups.map((group) => [group.name, time(() => each(group.lines, decode))]),
			),
		}),
	};
}

function batches(lines) {
	const events = lines.map(decode);
	const sizes = SIZES.map((size) => inPieces(events, size).map(encode));
	return {
		prove: () => ({ counts: tally(sizes.at(-1), decode) }),
		pass: () => ({
			stages_ns: Object.fromEntries(
				sizes.map((lists, index) => [SIZES[index], time(() => each(lists, decode))]),
			),
		}),
	};
}

/** Walks all events of all units. */
function tally(units, eventsOf) {
	const counts = { events: 0, errors: 0, tags: 0, values: 0, value_bytes: 0, content_bytes: 0, kinds: 0, seconds: 0 };
	eachTold(units, eventsOf, (events) => {
		if (events === undefined) {
			counts.events += 1;
			counts.errors += 1;
		}
		for (const { kind, created_at, tags, content } of events ?? []) {
			counts.events += 1;
			counts.kinds += kind;
			counts.seconds += created_at;
			counts.content_bytes += Buffer.byteLength(content);
			counts.tags += tags.length;
			for (const value of tags.flat()) {
				counts.values += 1;
				counts.value_bytes += Buffer.byteLength(value);
			}
		}
	});
	return counts;
}

/** Passes the result of each unit to `told`; `undefined` for a refused unit, whose reason is logged. */
function eachTold(units, work, told) {
	let refusals = 0;
	for (const [index, unit] of units.entries()) {
		let outcome;
		try {
			outcome = work(unit);
		} catch (refusal) {
			if (++refusals <= TOLD_REFUSALS) {
				console.error(`unit ${index} refused: ${refusal}`);
			}
		}
		told(outcome);
	}
}

function timeEach(chunks, work) {
	return chunks.map((chunk) => time(() => each(chunk, work)));
}

function inPieces(units, size) {
	const pieces = [];
	for (let start = 0; start < units.length; start += size) {
		pieces.push(units.slice(start, start + size));
	}
	return pieces;
}

function each(units, work) {
	for (const unit of units) {
		try {
			barrier(work(unit));
		} catch {
			// Counted by `prove`.
		}
	}
}

function time(work) {
	const start = process.hrtime.bigint();
	work();
	return Number(process.hrtime.bigint() - start);
}

/** Keeps each value reachable, so that the engine cannot remove its construction. */
function barrier(value) {
	globalThis.lastValue = value;
}

/** Lines end in LF and nothing else. One that starts with `#` names the group of the lines after it. */
function readGroups(files) {
	const groups = [];
	for (const file of files.map((path) => readFileSync(path))) {
		for (let start = 0, end; start < file.length; start = end + 1) {
			const found = file.indexOf(0x0a, start);
			end = found === -1 ? file.length : found;
			const line = file.subarray(start, end);
			if (line[0] === 0x23) {
				groups.push({ name: line.toString('utf8', 1), lines: [] });
				continue;
			}
			if (groups.length === 0) {
				groups.push({ name: '', lines: [] });
			}
			groups.at(-1).lines.push(line);
		}
	}
	return groups;
}
