/** Reads the files of each task, does the work over them and sums up the counts. */

import { readFileSync } from 'node:fs';

/**
 * A task with its corpus in memory.
 * @typedef {{ units: number, bytes: number, prove: () => Promise<object> | object, pass: () => Promise<void> | void }} Work
 */

const DECODED = [
	'cid-sha256', 'key-order', 'duplicate-keys', 'minimal-heads', 'utf8', 'indefinite-lengths', 'float-canonical',
	'only-tag-42', 'link-shape', 'trailing-bytes', 'depth-bound',
];
const OF_TREES = ['low-s', 'mst-order', 'mst-layer', 'mst-prefix', 'mst-shape', 'record-path'];
const OF_COMMITS = [...DECODED, ...OF_TREES, 'event-fields', 'op-records', 'inversion', 'chain', 'clock'];
const OF_REPOSITORIES = [...DECODED, ...OF_TREES, 'mst-once', 'complete', 'record-cbor'];
const OF_EVENTS = ['utf8', 'trailing-bytes', 'hex-lower', 'kind-range', 'duplicate-fields', 'limits', 'id', 'signature'];

/** The tasks by name and variant, with the calls of the package. */
export function tasksOf(wireproof) {
	return {
		decode: { verified: { checks: DECODED, load: (files) => decoding(wireproof, files) } },
		sigs: { crypto: { checks: ['low-s'], load: (files) => signatures(wireproof, files) } },
		repo: { total: { checks: OF_REPOSITORIES, load: (files) => repository(wireproof, files) } },
		commit: {
			full: { checks: OF_COMMITS, load: (files) => commits(wireproof, files, 1) },
			'full/batch': { checks: OF_COMMITS, load: (files) => commits(wireproof, files, 256) },
		},
		'nostr-validated': {
			json: { checks: OF_EVENTS, load: (files) => events(wireproof, files, 1) },
			'json/batch': { checks: OF_EVENTS, load: (files) => events(wireproof, files, 256) },
		},
		hostile: {
			repo: { checks: OF_REPOSITORIES, load: (files) => hostile(files, repositoryVerdict(wireproof)) },
			frames: { checks: OF_COMMITS, load: (files) => hostile(files, framesVerdict(wireproof)) },
		},
	};
}

/** The task `decode`. */
function decoding({ FrameDecoder, Cid, CborFloat }, files) {
	const frames = files.flatMap((file) => partsOf(bytesOf(file)));
	const decoder = new FrameDecoder();
	const each = (emit, refuse) => {
		for (const frame of frames) {
			try {
				decoder.decode(frame).blocks.map(valueOf).forEach(emit);
			} catch {
				refuse();
			}
		}
	};
	const prove = () => {
		const counts = Object.fromEntries(COUNTS.map((name) => [name, 0]));
		const count = counterOf(counts, Cid, CborFloat);
		let errors = 0;
		each(count, () => (errors += 1));
		return { counts: { frames: frames.length, errors, ...counts } };
	};
	return { units: frames.length, bytes: total(frames), prove, pass: () => each(keep, () => {}) };
}

/** The value of a block; the package leaves it to the caller what one that is not canonical means. */
function valueOf(block) {
	if (!block.canonical && block.cid.codec === DAG_CBOR) throw new Error('no canonical DAG-CBOR');
	return block.value;
}

const DAG_CBOR = 0x71;

const COUNTS = [
	'blocks', 'maps', 'map_entries', 'arrays', 'array_items', 'text_bytes', 'byte_string_bytes', 'links', 'integers',
	'floats', 'booleans', 'nulls',
];

/** Counts the items in a value. */
function counterOf(counts, Cid, CborFloat) {
	const count = (value) => {
		if (value === null) counts.nulls += 1;
		else if (typeof value === 'string') counts.text_bytes += Buffer.byteLength(value);
		else if (typeof value === 'boolean') counts.booleans += 1;
		else if (typeof value === 'bigint' || Number.isInteger(value)) counts.integers += 1;
		else if (typeof value === 'number' || value instanceof CborFloat) counts.floats += 1;
		else if (value instanceof Uint8Array) counts.byte_string_bytes += value.length;
		else if (value instanceof Cid) counts.links += 1;
		else if (Array.isArray(value)) {
			counts.arrays += 1;
			counts.array_items += value.length;
			value.forEach(count);
		} else {
			const entries = Object.entries(value);
			counts.maps += 1;
			counts.map_entries += entries.length;
			for (const [key, item] of entries) {
				counts.text_bytes += Buffer.byteLength(key);
				count(item);
			}
		}
	};
	return (block) => {
		counts.blocks += 1;
		if (block !== undefined) count(block);
	};
}

/** The task `sigs`: [u32 BE count], then [u8 curve][u16 BE length][commit][u16 BE length][33-byte key] for each. */
function signatures({ verifySignature }, files) {
	const units = files.flatMap(readCommits);
	const prove = () => {
		const counts = { commits: units.length, valid_k256: 0, valid_p256: 0, invalid: 0, errors: 0 };
		for (const { curve, message, signature, key } of units) {
			const { verified } = verifySignature(message, signature, key);
			counts[verified ? `valid_${curve}` : 'invalid'] += 1;
		}
		return { counts };
	};
	const pass = () => units.forEach(({ message, signature, key }) => keep(verifySignature(message, signature, key)));
	return { units: units.length, bytes: units.reduce((sum, { length }) => sum + length, 0), prove, pass };
}

function readCommits(path) {
	const file = readFileSync(path);
	const units = [];
	for (let at = 4, left = file.readUInt32BE(0); left > 0; left--) {
		const curve = file[at] === 0 ? 'p256' : 'k256';
		const commit = file.subarray(at + 3, at + 3 + file.readUInt16BE(at + 1));
		at += 3 + commit.length;
		const point = file.subarray(at + 2, at + 2 + file.readUInt16BE(at));
		at += 2 + point.length;
		units.push({ curve, length: commit.length, key: didKey(curve, point), ...cutSignature(commit) });
	}
	return units;
}

/** Splits a canonical commit: the message is the same map without the entry `sig`. */
function cutSignature(commit) {
	const start = commit.indexOf(SIG_KEY);
	const end = start + SIG_KEY.length + SIG_LEN;
	const message = Buffer.concat([commit.subarray(0, start), commit.subarray(end)]);
	message[0] -= 1;
	return { message, signature: commit.subarray(end - SIG_LEN, end) };
}

const SIG_KEY = Buffer.from('\x63sig\x58\x40', 'latin1');
const SIG_LEN = 64;

function didKey(curve, point) {
	const prefix = curve === 'k256' ? [0xe7, 0x01] : [0x80, 0x24];
	return `did:key:z${base58(Buffer.concat([Buffer.from(prefix), point]))}`;
}

function base58(bytes) {
	let number = BigInt(`0x${bytes.toString('hex')}`);
	let text = '';
	for (; number > 0n; number /= 58n) {
		text = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'[Number(number % 58n)] + text;
	}
	return text;
}

/** The task `repo`. */
function repository({ openRepository, verifyRepository }, [path, beside]) {
	const { did, signing_key: key } = JSON.parse(readFileSync(beside, 'utf8'));
	const car = bytesOf(path);
	const prove = () => {
		const repository = openRepository(car, { did, key });
		const { blocks, records, invalidRecords, data } = repository.summary;
		const record_bytes = [...repository.records()].reduce((sum, { bytes }) => sum + bytes.length, 0);
		repository.free();
		const invalid = invalidRecords > 0 ? { invalid_records: invalidRecords } : {};
		return { counts: { repositories: 1, blocks, records, record_bytes, valid: 1, root: data, ...invalid } };
	};
	return { units: 1, bytes: car.length, prove, pass: async () => keep(await verifyRepository(car, { did, key })) };
}

/** The task `commit`. The state is empty before each pass, and keys are parsed before. */
function commits({ decodeFrame, Judge }, files, batch) {
	const frames = files.slice(0, -1).flatMap((file) => partsOf(bytesOf(file)));
	const keys = JSON.parse(readFileSync(files.at(-1), 'utf8'));
	const now = dayAfterNewest(decodeFrame, frames);
	let judge = new Judge({ keys });
	const judgeAll = (each) => {
		for (let at = 0; at < frames.length; at += batch) {
			const part = frames.slice(at, at + batch);
			(batch === 1 ? [judge.judge(part[0], { now })] : judge.judgeMany(part, { now })).forEach(each);
		}
		judge.free();
		judge = new Judge({ keys });
	};
	const prove = () => {
		const counts = { frames: frames.length, commits: 0, accepted: 0, first_sighting: 0, chain_broken: 0, refused: 0, ops: 0 };
		judgeAll(({ kind, verified, chain, ops }) => {
			if (kind !== 'commit' && kind !== 'undecodable') return;
			counts.commits += 1;
			counts[verified ? CHAINS[chain] : 'refused'] += 1;
			counts.ops += ops.length;
		});
		return { counts };
	};
	return { units: frames.length, bytes: total(frames), prove, pass: () => judgeAll(keep) };
}

const CHAINS = {
	intact: 'accepted',
	unproved: 'accepted',
	'first-seen': 'first_sighting',
	broken: 'chain_broken',
	'still-desynchronized': 'chain_broken',
};

function dayAfterNewest(decodeFrame, frames) {
	const timeOf = (frame) => {
		try {
			return Date.parse(decodeFrame(frame).time) || 0;
		} catch {
			return 0;
		}
	};
	return frames.reduce((newest, frame) => Math.max(newest, timeOf(frame)), 0) + 86_400_000;
}

/** The task `nostr-validated`: each event from its bytes. */
function events({ nostr }, files, batch) {
	const lines = files.flatMap((file) => readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => Buffer.from(line)));
	const verifyAll = (each) => {
		for (let at = 0; at < lines.length; at += batch) {
			(batch === 1 ? [nostr.verify(lines[at])] : nostr.verifyMany(lines.slice(at, at + batch))).forEach(each);
		}
	};
	const prove = () => {
		const counts = { events: lines.length, valid: 0, invalid: 0, errors: 0 };
		verifyAll(({ verified, code }) => {
			counts[verified ? 'valid' : code === 'event/unreadable' ? 'errors' : 'invalid'] += 1;
		});
		return { counts };
	};
	return { units: lines.length, bytes: total(lines), prove, pass: () => verifyAll(keep) };
}

/** The task `hostile`. */
function hostile([path, beside], judge) {
	const file = bytesOf(path);
	const owner = JSON.parse(readFileSync(beside, 'utf8'));
	const prove = async () => {
		const reason = await judge(file, owner);
		return { counts: { accepted: Number(reason === undefined), refused: Number(reason !== undefined) }, reason };
	};
	return { units: 1, bytes: file.length, prove, pass: async () => keep(await prove()) };
}

function repositoryVerdict({ verifyRepository, WireproofError }) {
	return async (car, { did, signing_key: key }) => {
		try {
			await verifyRepository(car, { did, key });
		} catch (error) {
			if (error instanceof WireproofError) return `${error.code}: ${error.message}`;
			throw error;
		}
	};
}

/** The verdict of the last frame. A gap before a commit is a refusal, because its changes are to be applied. */
function framesVerdict({ decodeFrame, Judge }) {
	return (file, { did, signing_key: key, now }) => {
		const frames = partsOf(file);
		const judge = new Judge({ keys: { [did]: key } });
		const time = now === undefined ? dayAfterNewest(decodeFrame, frames) : Date.parse(now);
		const outcome = judge.judgeMany(frames, { now: time }).at(-1);
		judge.free();
		const hasGap = outcome.kind === 'commit' && outcome.chain === 'broken';
		return outcome.verified && !hasGap ? undefined : `${outcome.code}: ${outcome.rule}`;
	};
}

/** [u32 BE count], then [u32 BE length][part] for each. */
function partsOf(file) {
	const view = new DataView(file.buffer, file.byteOffset, file.length);
	const parts = [];
	for (let at = 4, left = view.getUint32(0); left > 0; left--) {
		const end = at + 4 + view.getUint32(at);
		parts.push(file.subarray(at + 4, end));
		at = end;
	}
	return parts;
}

function bytesOf(path) {
	const file = readFileSync(path);
	return new Uint8Array(file.buffer, file.byteOffset, file.length);
}

function total(parts) {
	return parts.reduce((sum, part) => sum + part.length, 0);
}

/** Keeps a value reachable, so that the engine cannot remove its construction. */
function keep(value) {
	globalThis.lastValue = value;
}
