import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { Worker } from 'node:worker_threads';

import {
	cborDecode,
	cborEncode,
	CborFloat,
	Cid,
	decodeCar,
	decodeCarStream,
	decodeFrame,
	FrameDecoder,
	Judge,
	nostr,
	verifyRange,
	verifyRecord,
	verifyRepository,
	WireproofError,
} from 'wireproof';

const { seeds } = JSON.parse(readFileSync(join(process.env.WIREPROOF_CASES, 'cases.json'), 'utf8'));
const seed = seeds.find(({ kind, code }) => kind === 'repository' && code === null);
const car = Buffer.from(seed.bytes, 'base64');
const { did, key } = seed;

test('a stream reports its progress', async () => {
	const seen = [];
	const proved = await verifyRepository(new Blob([car]).stream(), { did, key, onProgress: (now) => seen.push(now) });
	assert.equal(proved.bytes, car.length);
	assert.equal(seen.at(-1).bytes, car.length);
	assert.equal(seen.at(-1).records, proved.records);
});

test('an aborted signal rejects with its reason, before the next chunk and while one is awaited', async () => {
	const reason = new Error('enough');
	await assert.rejects(verifyRepository(car, { key, signal: AbortSignal.abort(reason) }), reason);
	const controller = new AbortController();
	let isCancelled = false;
	const endless = new ReadableStream({
		pull: () => new Promise(() => {}),
		cancel: () => {
			isCancelled = true;
		},
	});
	const verdict = verifyRepository(endless, { key, signal: controller.signal });
	setTimeout(() => controller.abort(reason), 20);
	await assert.rejects(verdict, reason);
	assert.ok(isCancelled);
});

test('a stream that fails rejects with its own error', async () => {
	const broken = async function* () {
		yield car.subarray(0, 100);
		throw new RangeError('the connection');
	};
	await assert.rejects(verifyRepository(broken(), { key }), new RangeError('the connection'));
	const { blocks } = await decodeCarStream(broken());
	await assert.rejects(async () => {
		for await (const block of blocks) {
			assert.ok(block.proved);
		}
	}, new RangeError('the connection'));
});

test('the blocks of a stream that are left end its source', async () => {
	let isOver = false;
	const source = async function* () {
		try {
			for (;;) {
				yield car;
			}
		} finally {
			isOver = true;
		}
	};
	const { blocks } = await decodeCarStream(source());
	for await (const block of blocks) {
		assert.ok(block.bytes.length > 0);
		break;
	}
	await new Promise((resolve) => setTimeout(resolve, 10));
	assert.ok(isOver);
});

test('wrong arguments are type errors that name the argument', async () => {
	const isNamed = (name) => (error) => error instanceof TypeError && error.message.includes(name);
	await assert.rejects(verifyRepository(car, {}), isNamed('options'));
	await assert.rejects(verifyRepository(car, { key: 'did:key:z6' }), isNamed('key'));
	await assert.rejects(verifyRepository(7, { key }), isNamed('source'));
	await assert.rejects(verifyRepository(car, { key, did: 7 }), isNamed('did'));
	await assert.rejects(verifyRepository(car, { didDocument: { id: did } }), isNamed('didDocument'));
	assert.throws(() => verifyRecord(car, 'a/b', { unsigned: true }), isNamed('options'));
	assert.throws(() => verifyRange(car, 'app.bsky.feed.post', { key }), isNamed('collections'));
	assert.throws(() => verifyRange(car, ['not a name'], { key }), isNamed('collections'));
	assert.throws(() => decodeCar('text'), isNamed('bytes'));
	assert.throws(() => new Judge({ acceptEverything: true }), isNamed('options'));
	assert.throws(() => new Judge({ state: { version: 9, accounts: [] } }), isNamed('state'));
	assert.throws(() => nostr.verifyMany([7]), isNamed('events[0]'));
});

test('the account is the one of the document, or the expected one', async () => {
	const publicKeyMultibase = key.slice('did:key:'.length);
	const method = (id) => ({ id: `${id}#atproto`, type: 'Multikey', controller: id, publicKeyMultibase });
	const document = (id) => ({ id, verificationMethod: [method(id)] });
	assert.equal((await verifyRepository(car, { didDocument: document(did) })).did, did);
	const other = document('did:web:other.example');
	await assert.rejects(verifyRepository(car, { didDocument: other }), { code: 'commit/did' });
	await assert.rejects(verifyRepository(car, { key, did: 'did:web:other.example' }), { code: 'commit/did' });
	assert.equal((await verifyRepository(car, { unsigned: true })).signed, false);
});

test('values survive', () => {
	const values = [
		...[0, 23, 24, 255, 256, 65535, 65536, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1, -1, -24, -25, -(2 ** 53 - 1)],
		...[2n ** 53n, 2n ** 63n, 2n ** 64n - 1n, -(2n ** 64n), -(2n ** 53n)],
		...[1.5, -0.25, 5e-324, new CborFloat(1), true, false, null, '', 'é', '𝄞', 'a'.repeat(300)],
		...[new Uint8Array(0), new Uint8Array(70_000), [], [[]], {}, { b: 1, aa: 2, a: [{ c: null }] }],
		...[{ __proto__: null, ['__proto__']: 5 }, new Cid(Uint8Array.of(1, 0x55, 0, 1, 7))],
	];
	for (const value of values) {
		const bytes = cborEncode(value);
		const decoded = cborDecode(bytes);
		assert.deepEqual(cborEncode(decoded), bytes);
		if (typeof value !== 'object') {
			assert.equal(decoded, value);
		}
	}
	assert.deepEqual(Object.keys(cborDecode(cborEncode({ bb: 1, a: 2, c: undefined }))), ['a', 'bb']);
	assert.equal(Object.getPrototypeOf(cborDecode(cborEncode({ ['__proto__']: { x: 1 } }))), Object.prototype);
});

test('what has no canonical form is refused', () => {
	const deep = (depth) => (depth === 0 ? [] : [deep(depth - 1)]);
	assert.doesNotThrow(() => cborDecode(cborEncode(deep(126))));
	const circle = [];
	circle.push(circle);
	const none = [NaN, Infinity, -0, 2 ** 53, 2n ** 64n, -(2n ** 64n) - 1n, undefined, () => {}, '\ud800', { ['\udc00']: 1 }];
	for (const value of [...none, Symbol('s'), new Map(), new Date(0), deep(127), circle]) {
		assert.throws(() => cborEncode(value), (error) => error instanceof WireproofError && error.code === 'dag-cbor');
	}
});

test('a decoder decodes one frame after the other, and a name of a payload replaces no property', () => {
	const decoder = new FrameDecoder();
	for (const { bytes } of seeds.filter(({ kind }) => kind === 'frame').slice(0, 50)) {
		const frame = Buffer.from(bytes, 'base64');
		const outcome = (decode) => {
			try {
				return decode(frame);
			} catch (error) {
				return error.code;
			}
		};
		assert.deepEqual(outcome((frame) => decoder.decode(frame)), outcome(decodeFrame));
	}
	decoder.free();
	const payload = cborEncode({ kind: 'commit', blocks: 1 });
	for (const type of ['#new', 'constructor', '__proto__']) {
		const header = cborEncode({ t: type, op: 1 });
		const frame = decodeFrame(Buffer.concat([header, payload]));
		assert.deepEqual([frame.kind, frame.type, frame.blocks, frame.payload.kind], ['unknown', type, [], 'commit']);
	}
});

test('a judge names the accounts whose keys it lacks', () => {
	const { did, key, now, bytes } = seeds.find(({ kind, code }) => kind === 'frames' && code === null);
	const file = Buffer.from(bytes, 'base64');
	const frame = file.subarray(8, 8 + file.readUInt32BE(4));
	const judge = new Judge();
	assert.deepEqual(judge.unknownAccounts([frame, frame]), [did]);
	assert.equal(judge.judge(frame, { now: now / 1000 }).code, 'signature/no-key');
	judge.setKey(did, key);
	assert.deepEqual(judge.unknownAccounts([frame]), []);
	assert.equal(judge.judge(frame, { now: new Date(now / 1000) }).code, 'verified');
	assert.equal(judge.judge(frame, { now: now / 1000 }).code, 'event/stale-rev');
	judge.setKey(did, null);
	assert.deepEqual(judge.unknownAccounts([frame]), [did]);
	assert.equal(judge.exportState().accounts.length, 1);
	judge.free();
});

test('a worker verifies too', async () => {
	const program = `
		import { parentPort, workerData } from 'node:worker_threads';
		const { verifyRepository } = await import(workerData.wireproof);
		parentPort.postMessage(await verifyRepository(workerData.car, workerData.options));
	`;
	const wireproof = import.meta.resolve('wireproof');
	const url = new URL(`data:text/javascript,${encodeURIComponent(program)}`);
	const worker = new Worker(url, { workerData: { car: new Uint8Array(car), options: { did, key }, wireproof } });
	const proved = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
	assert.deepEqual(proved, await verifyRepository(car, { did, key }));
	await worker.terminate();
});
