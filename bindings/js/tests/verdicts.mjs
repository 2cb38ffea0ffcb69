/** Compares the verdicts of the package with those of the library, in whatever runs this module. */

/** Judges every case; returns the number of cases, and the differences. */
export async function compare(wireproof, { seeds, cases }) {
	const inputs = seeds.map((seed) => ({ ...seed, bytes: fromBase64(seed.bytes) }));
	const differences = [];
	for (const { seed: index, changes, verdict } of cases) {
		const seed = inputs[index];
		const input = changed(seed.bytes, changes);
		for (const [way, judge] of Object.entries(WAYS[seed.kind])) {
			const found = canonical(await verdictOf(wireproof, () => judge(wireproof, input, seed)));
			const expected = canonical(verdict);
			if (found !== expected) {
				differences.push({ name: seed.name, kind: seed.kind, way, index, changes, found, expected });
			}
		}
	}
	return { cases: cases.length, differences };
}

async function verdictOf(wireproof, judge) {
	try {
		return { ok: await judge() };
	} catch (error) {
		if (error instanceof wireproof.WireproofError) {
			const { code, rule, message, offset, cid, path, index } = error;
			return { fault: { code, rule, message, offset, cid, path, index } };
		}
		if (error instanceof TypeError) {
			return { fault: { code: 'argument', message: error.message } };
		}
		throw error;
	}
}

/** The functions that read each kind of input; all of a kind must agree. */
const WAYS = {
	repository: {
		bytes: (w, input, { did, key }) => w.verifyRepository(input, { did, key }),
		stream: (w, input, { did, key }) => w.verifyRepository(inPieces(input), { did, key }),
		opened: (w, input, { did, key }) => opened(w, input, { did, key }),
	},
	'unsigned-repository': {
		bytes: (w, input) => w.verifyRepository(input, { unsigned: true }),
		stream: (w, input) => w.verifyRepository(inPieces(input), { unsigned: true }),
		opened: (w, input) => opened(w, input, { unsigned: true }),
	},
	range: {
		bytes: (w, input, { did, key, collections }) => {
			const proof = w.verifyRange(input, collections, { did, key });
			return { ...proof, records: proof.records.map(placed) };
		},
	},
	record: {
		bytes: (w, input, { did, key, path }) => {
			const proof = w.verifyRecord(input, path, { did, key });
			return { ...proof, record: proof.record && placed(proof.record) };
		},
	},
	frames: {
		together: (w, input, seed) => judged(w, input, seed, (judge, frames, now) => judge.judgeMany(frames, { now })),
		alone: (w, input, seed) =>
			judged(w, input, seed, (judge, frames, now) => frames.map((frame) => judge.judge(frame, { now }))),
		resumed: (w, input, seed) =>
			judged(w, input, seed, (judge, frames, now) =>
				frames.map((frame) => {
					const next = new w.Judge({ keys: { [seed.did]: seed.key }, state: judge.exportState() });
					const outcome = next.judge(frame, { now });
					judge.importState(next.exportState());
					next.free();
					return outcome;
				}),
			),
	},
	frame: {
		bytes: (w, input) => {
			const { blocks } = w.decodeFrame(input);
			checkValues(w, blocks);
			return blocks.flatMap(numbers);
		},
	},
	car: {
		bytes: (w, input) => {
			const { roots, blocks } = w.decodeCar(input);
			checkValues(w, blocks);
			return rowsOf(input, roots, blocks);
		},
		stream: async (w, input) => {
			const { roots, blocks } = await w.decodeCarStream(inPieces(input));
			const all = [];
			for await (const block of blocks) {
				all.push(block);
			}
			return rowsOf(input, roots, all);
		},
	},
	cbor: {
		bytes: (w, input) => {
			const value = w.cborDecode(input);
			assertSame(w.cborEncode(value), input);
			return seedJson(w, value);
		},
	},
	'plc-log': {
		text: (w, input) => w.verifyPlcLog(LOSSY.decode(input)),
	},
	signature: {
		bytes: (w, input, { key }) => w.verifySignature(input.subarray(64), input.subarray(0, 64), key),
	},
	event: {
		bytes: (w, input) => w.nostr.verifyMany([input]),
		single: (w, input) => [w.nostr.verify(input)],
	},
};

/** A summary of an opened repository, whose records and nodes are read too. */
function opened(w, input, options) {
	const repository = w.openRepository(input, options);
	try {
		const records = [...repository.records()];
		const counted = Object.values(repository.collections()).reduce((sum, count) => sum + count, 0);
		if (records.length !== repository.summary.records || counted !== records.length) {
			throw new Error(`${records.length} records and ${counted} by collection`);
		}
		for (const { path, cid, bytes } of records.slice(0, 3)) {
			const found = repository.get(path);
			const nodes = repository.proofPath(path).map((node) => repository.node(node));
			const entries = nodes.at(-1).entries.filter(({ key, value }) => key === path && value === cid);
			if (found?.cid !== cid || entries.length !== 1 || nodes[0].cid !== repository.summary.data) {
				throw new Error(`no way to ${path}`);
			}
			assertSame(repository.block(cid).bytes, bytes);
		}
		return repository.summary;
	} finally {
		repository.free();
	}
}

function judged(w, input, { did, key, now }, judgeAll) {
	const judge = new w.Judge({ keys: { [did]: key } });
	try {
		const frames = framesOf(input);
		const outcomes = judgeAll(judge, frames, now / 1000);
		return outcomes.map((outcome, at) => ({
			...outcome,
			ops: outcome.ops.map(({ record, ...op }) => ({ ...op, record: record ? placeIn(frames[at], record) : null })),
		}));
	} finally {
		judge.free();
	}
}

/** The frames in a file of frames; a part of one that is cut is a frame too. */
function framesOf(file) {
	const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
	const frames = [];
	for (let at = 4; at + 4 <= file.length; ) {
		const end = Math.min(at + 4 + view.getUint32(at), file.length);
		frames.push(file.subarray(at + 4, end));
		at = end;
	}
	return frames;
}

function placed({ path, cid, offset, bytes, invalid }) {
	return { path, cid, offset, length: bytes.length, invalid };
}

function placeIn(whole, part) {
	return [part.byteOffset - whole.byteOffset, part.length];
}

/** The numbers that the library has for a block. */
function numbers({ cid, offset, bytes, proved, canonical: isCanonical }) {
	return [offset - cid.bytes.length, cid.bytes.length, bytes.length, Number(proved) + 2 * Number(isCanonical)];
}

/** The numbers that the library has for an archive. The roots of a stream have no place, so they are looked for. */
function rowsOf(input, roots, blocks) {
	const places = [];
	let from = 0;
	for (const { bytes } of roots) {
		from = indexOf(input, bytes, from);
		places.push(from, bytes.length);
		from += bytes.length;
	}
	return [roots.length, ...places, ...blocks.flatMap(numbers)];
}

function indexOf(input, part, from) {
	const isAt = (at) => part.every((byte, index) => byte === input[at + index]);
	let at = from;
	while (!isAt(at)) {
		at += 1;
	}
	return at;
}

/** Every value is encoded to the bytes that it was decoded from. */
function checkValues(w, blocks) {
	for (const { value, canonical: isCanonical, bytes } of blocks) {
		if (isCanonical) {
			assertSame(w.cborEncode(value), bytes);
		}
	}
}

/** A value as JSON of the data model; null where the library has none. */
function seedJson(w, value) {
	const json = atJson(w, value);
	return json === NO_JSON ? null : json;
}

function atJson(w, value) {
	if (value instanceof Uint8Array) {
		return { $bytes: toBase64(value).replace(/=+$/, '') };
	}
	if (value instanceof w.Cid) {
		return value.toJSON();
	}
	if (value instanceof w.CborFloat) {
		return value.value;
	}
	if (typeof value === 'bigint') {
		return Number(value);
	}
	if (Array.isArray(value)) {
		return all(value.map((item) => atJson(w, item)), (items) => items);
	}
	if (typeof value === 'object' && value !== null) {
		const keys = Object.keys(value);
		const items = keys.map((key) => atJson(w, value[key]));
		const isSpecial = keys.some((key) => key === '$link' || key === '$bytes');
		return isSpecial ? NO_JSON : all(items, () => Object.fromEntries(keys.map((key, at) => [key, items[at]])));
	}
	return value;
}

function all(items, then) {
	return items.includes(NO_JSON) ? NO_JSON : then(items);
}

const NO_JSON = Symbol('no JSON');

function assertSame(found, expected) {
	if (found.length !== expected.length || found.some((byte, at) => byte !== expected[at])) {
		throw new Error(`other bytes: ${toBase64(found)} instead of ${toBase64(expected)}`);
	}
}

/** A stream of pieces whose lengths differ. */
async function* inPieces(input) {
	for (let at = 0, length = 1; at < input.length; at += length, length = 1 + ((length * 31) % 4099)) {
		yield input.subarray(at, at + length);
	}
}

function changed(bytes, changes) {
	let input = bytes;
	for (const [start, removed, inserted] of changes) {
		const piece = fromBase64(inserted);
		const next = new Uint8Array(input.length - removed + piece.length);
		next.set(input.subarray(0, start));
		next.set(piece, start);
		next.set(input.subarray(start + removed), start + piece.length);
		input = next;
	}
	return input;
}

/** JSON with sorted keys; a fault of an argument has its code and message alone. */
function canonical(value) {
	const sorted = (_, item) =>
		typeof item === 'object' && item !== null && !Array.isArray(item)
			? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
			: item;
	const fault = value.fault?.code === 'argument' ? { code: 'argument', message: value.fault.message } : value.fault;
	return JSON.stringify(fault ? { fault } : { ok: value.ok }, sorted);
}

function fromBase64(text) {
	return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function toBase64(bytes) {
	return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

const LOSSY = new TextDecoder('utf-8', { ignoreBOM: true });
