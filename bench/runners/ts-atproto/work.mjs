/** Reads the files of each task, does the work over them and sums up the counts. */

import { readFileSync } from 'node:fs';

import * as frames from './frames.mjs';
import * as mst from './mst.mjs';
import * as repo from './repo.mjs';
import * as sigs from './sigs.mjs';

/**
 * A task with its corpus in memory.
 * @typedef {{
 *   units: number,
 *   bytes: number,
 *   prove: () => Promise<{ counts: Record<string, number | string>, reason?: string }>,
 *   pass: () => Promise<Record<string, number> | void>,
 * }} Work
 */

/** @type {Record<string, Record<string, { checks: string[], load: (files: string[]) => Work | Promise<Work> }>>} */
export const TASKS = {
	sigs: Object.fromEntries(
		Object.entries(sigs.VARIANTS).map(([name, { checks, prepare }]) => [
			name,
			{ checks, load: (files) => signedCommits(prepare, files) },
		]),
	),
	mst: {
		'insert-root/ascending': { checks: [], load: ascending },
		'insert-root/shuffled': { checks: [], load: shuffled },
		lookup: { checks: [], load: lookups },
		mixed: { checks: [], load: mixed },
	},
	repo: { total: { checks: repo.CHECKS, load: repository } },
	commit: { full: { checks: frames.CHECKS, load: commits } },
	hostile: {
		repo: { checks: repo.CHECKS, load: hostileRepo },
		frames: { checks: frames.CHECKS, load: hostileFrames },
	},
};

/** The task `sigs`. */
function signedCommits(prepare, files) {
	const units = files.flatMap(readCommits).map(({ curve, commit, point }) => ({
		curve,
		length: commit.length,
		check: prepared(prepare, curve, commit, point),
	}));
	return {
		units: units.length,
		bytes: units.reduce((sum, unit) => sum + unit.length, 0),
		prove: async () => ({ counts: await countVerdicts(units) }),
		pass: () => verifyAll(units),
	};
}

/** A unit that cannot be prepared is refused in each pass. */
function prepared(prepare, curve, commit, point) {
	try {
		return prepare(curve, commit, point);
	} catch (refusal) {
		return () => {
			throw refusal;
		};
	}
}

async function countVerdicts(units) {
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

async function verifyAll(units) {
	for (const { check } of units) {
		try {
			keep(await check());
		} catch {
			// Counted by `prove`.
		}
	}
}

/** The task `mst`. */
function ascending(files) {
	return tree(readRecords(files).records);
}

function shuffled(files) {
	const { records, shuffled } = readRecords(files);
	return tree(shuffled.map((index) => records[index]));
}

function tree(records) {
	const root = async () => (await mst.build(records)).getPointer();
	return {
		units: records.length,
		bytes: bytesOf(records.map(({ key }) => key)),
		prove: async () => ({ counts: { records: records.length, root: String(await root()) } }),
		pass: async () => keep(await root()),
	};
}

async function lookups(files) {
	const { records, asked } = readRecords(files);
	const tree = await mst.build(records);
	// A key of its own for each lookup, as in every runner.
	const keys = asked.map((index) => mst.copyOf(records[index].key));
	const look = async (found) => {
		for (const key of keys) {
			const cid = await tree.get(key);
			if (cid !== null) {
				found(cid);
			}
		}
	};
	const counts = async () => {
		const counts = { lookups: keys.length, found: 0, lookup_checksum: 0 };
		await look((cid) => {
			counts.found += 1;
			counts.lookup_checksum = (counts.lookup_checksum + mst.checksumOf(cid)) >>> 0;
		});
		return counts;
	};
	return {
		units: keys.length,
		bytes: bytesOf(keys),
		prove: async () => ({ counts: await counts() }),
		pass: () => look(keep),
	};
}

/** Inserts, updates, deletes and lookups in turn, on a tree that is empty before the first. */
function mixed(files) {
	const { records, operations } = readRecords(files);
	const steps = operations.map(({ kind, key, value }) => ({
		kind,
		key: mst.copyOf(records[key].key),
		cid: records[value].cid,
	}));
	const run = async (found, seen) => {
		let tree = await mst.empty();
		for (const [index, { kind, key, cid }] of steps.entries()) {
			tree = await mst.apply(tree, KINDS[kind], key, cid, found);
			if ((index + 1) % ROOT_EVERY === 0 || index + 1 === steps.length) {
				seen(await tree.getPointer());
			}
		}
	};
	const counts = async () => {
		const counts = { operations: steps.length, hits: 0, hit_checksum: 0, root_checksum: 0, last_root: '' };
		const found = (cid) => {
			counts.hits += 1;
			counts.hit_checksum = (counts.hit_checksum + mst.checksumOf(cid)) >>> 0;
		};
		await run(found, (root) => {
			counts.root_checksum = (counts.root_checksum + mst.checksumOf(root)) >>> 0;
			counts.last_root = String(root);
		});
		return counts;
	};
	return {
		units: steps.length,
		bytes: bytesOf(steps.map(({ key }) => key)),
		prove: async () => ({ counts: await counts() }),
		pass: () => run(keep, keep),
	};
}

/** The bytes of the keys, which are ASCII, and of a CID for each. */
function bytesOf(keys) {
	return keys.reduce((sum, key) => sum + key.length + CID_LEN, 0);
}

/** The task `repo`. */
function repository(files) {
	const { file, did, signingKey } = readOwned(files);
	return {
		units: 1,
		bytes: file.length,
		prove: async () => ({ counts: await repo.count(file, did, signingKey) }),
		pass: () => repo.verifyInStages(file, did, signingKey, keep),
	};
}

/**
 * The task `commit`. The Firehose has no state of accounts, so it cannot tell the first commit of one from the others, or a gap
 * before a commit: those counts are not given.
 */
function commits(files) {
	const all = files.slice(0, -1).flatMap((file) => splitFrames(readFileSync(file)));
	const judge = frames.judgeOf(JSON.parse(readFileSync(files.at(-1), 'utf8')));
	const judgeAll = async (delivered, refused) => {
		for (const frame of all) {
			try {
				delivered(await judge(frame));
			} catch {
				refused();
			}
		}
	};
	return {
		units: all.length,
		bytes: all.reduce((sum, frame) => sum + frame.length, 0),
		prove: async () => {
			const counts = { frames: all.length, commits: 0, refused: 0, ops: 0 };
			const count = (refused, ops) => {
				counts.commits += 1;
				counts.refused += refused;
				counts.ops += ops;
			};
			await judgeAll((events) => count(0, events.length), () => count(1, 0));
			return { counts };
		},
		pass: () => judgeAll(keep, () => {}),
	};
}

/** The task `hostile`. */
function hostileRepo(files) {
	const { file, did, signingKey } = readOwned(files);
	return hostileCase(file, () => repo.verify(file, did, signingKey));
}

function hostileFrames(files) {
	const { file, did, signingKey } = readOwned(files);
	const all = splitFrames(file);
	return hostileCase(file, () => frames.judgeInOrder(all, did, signingKey));
}

function hostileCase(file, judge) {
	const prove = async () => {
		try {
			await judge();
			return { counts: { accepted: 1, refused: 0 } };
		} catch (refusal) {
			return { counts: { accepted: 0, refused: 1 }, reason: String(refusal) };
		}
	};
	return { units: 1, bytes: file.length, prove, pass: async () => keep(await prove()) };
}

/** Keeps a value reachable, so that the engine cannot remove its construction. */
function keep(value) {
	globalThis.lastValue = value;
}

/** The file and the content of its JSON. */
function readOwned([path, beside]) {
	const { did, signing_key: signingKey } = JSON.parse(readFileSync(beside, 'utf8'));
	return { file: toBytes(readFileSync(path)), did, signingKey };
}

/** [u32 BE count], then [u8 curve][u16 BE length][commit][u16 BE length][33-byte key] for each. */
function readCommits(path) {
	return wholly(path, (reader) =>
		reader.list(() => ({ curve: CURVES[reader.u8()], commit: reader.piece(), point: reader.piece() })),
	);
}

/**
 * [u32 BE n], then [u16 BE length][key][CID] for each record; [u32 BE n] and the indices of the shuffled order;
 * [u32 BE m] and the indices of the lookups; [u32 BE o], then [u8 kind][u32 BE key][u32 BE CID] for each operation.
 */
function readRecords([path]) {
	return wholly(path, (reader) => ({
		records: reader.list(() => mst.record(reader.piece(), reader.take(CID_LEN))),
		shuffled: reader.list(() => reader.u32()),
		asked: reader.list(() => reader.u32()),
		operations: reader.list(() => ({ kind: reader.u8(), key: reader.u32(), value: reader.u32() })),
	}));
}

/** [u32 BE count], then [u32 BE length][frame] for each. */
function splitFrames(file) {
	const reader = new Reader(file);
	return reader.list(() => reader.take(reader.u32()));
}

/** The result of `read` on a file that it reads to its end. */
function wholly(path, read) {
	const reader = new Reader(readFileSync(path));
	const content = read(reader);
	if (reader.offset !== reader.bytes.length) {
		throw new Error(`${path}: bytes after the last unit`);
	}
	return content;
}

class Reader {
	constructor(bytes) {
		this.bytes = bytes;
		this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
		this.offset = 0;
	}

	u8() {
		return this.view.getUint8(this.offset++);
	}

	u32() {
		this.offset += 4;
		return this.view.getUint32(this.offset - 4);
	}

	piece() {
		this.offset += 2;
		return this.take(this.view.getUint16(this.offset - 2));
	}

	take(length) {
		const start = this.offset;
		this.offset += length;
		if (this.offset > this.bytes.length) {
			throw new Error('the file ends inside a unit');
		}
		return toBytes(this.bytes).subarray(start, this.offset);
	}

	list(item) {
		return Array.from({ length: this.u32() }, item);
	}
}

/** A plain Uint8Array, like the peer's users have, instead of Node's Buffer. */
function toBytes(buffer) {
	return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
}

const TOLD_REFUSALS = 5;
const CID_LEN = 36;
const KINDS = ['insert', 'update', 'delete', 'lookup'];

/** The number of operations from one reading of the root to the next. */
const ROOT_EVERY = 100;
const CURVES = ['p256', 'k256'];
