/** Whole repositories. */

import { bytesOf, call } from './error.js';
import { keyArguments, limitsOf } from './key.js';
import { pieces } from './pieces.js';
import { newSeed } from './seed.js';
import { Repository as Opened, RepositoryPieces, verify_repository } from './wasm/wireproof.js';

export async function verifyRepository(source, options) {
	const { kind, text, did } = keyArguments(options, { mayBeUnsigned: true });
	options.signal?.throwIfAborted();
	if (!(source instanceof Uint8Array || source instanceof ArrayBuffer)) {
		return verifyStream(source, options);
	}
	const car = bytesOf(source, 'source');
	return reported(call(() => verify_repository(car, kind, text, did, limitsOf(options))), options);
}

/** The summary, once the end is reported. */
function reported(json, { onProgress }) {
	const proved = JSON.parse(json);
	onProgress?.({ bytes: proved.bytes, records: proved.records, nodes: proved.nodes });
	return proved;
}

async function verifyStream(source, options) {
	const { kind, text, did } = keyArguments(options, { mayBeUnsigned: true });
	const stream = call(() => new RepositoryPieces(kind, text, did, limitsOf(options), newSeed()));
	try {
		for await (const piece of pieces(source, options.signal)) {
			const [bytes, records, nodes] = call(() => stream.push(piece));
			options.onProgress?.({ bytes, records, nodes });
		}
		return reported(call(() => stream.finish()), options);
	} finally {
		stream.free();
	}
}

export function openRepository(bytes, options) {
	return new Repository(bytes, options);
}

/** A proved repository whose records can be read. */
export class Repository {
	#opened;
	#bytes;

	constructor(bytes, options) {
		const { kind, text, did } = keyArguments(options, { mayBeUnsigned: true });
		this.#bytes = bytesOf(bytes, 'bytes');
		this.#opened = call(() => new Opened(this.#bytes, kind, text, did, limitsOf(options)));
		this.summary = JSON.parse(this.#opened.summary());
	}

	/** The number of records of every collection. */
	collections() {
		return JSON.parse(this.#opened.collections());
	}

	/** The records in the order of their paths, of one collection or of all. */
	*records(collection) {
		const [from, to] = this.#opened.range(collection === undefined ? '' : `${collection}/`);
		for (let at = from; at < to; at += PAGE) {
			yield* this.#page(at, Math.min(to, at + PAGE));
		}
	}

	/** The record at a path; undefined if there is none. */
	get(path) {
		const [from] = this.#opened.range(path);
		const [record] = this.#page(from, from + 1);
		return record?.path === path ? record : undefined;
	}

	/** The block of a CID; undefined if the archive has none. */
	block(cid) {
		const place = this.#opened.block(String(cid));
		return place && { offset: place[0], bytes: this.#bytes.subarray(place[0], place[0] + place[1]) };
	}

	/** The entries and links of a node of the tree; undefined if the CID is not of a node. */
	node(cid) {
		const json = this.#opened.node(String(cid));
		return json && JSON.parse(json);
	}

	/** The CIDs of the nodes from the root of the tree to the one that has the path, or has no place for it. */
	proofPath(path) {
		return this.#opened.proof_path(path);
	}

	free() {
		this.#opened.free();
	}

	[Symbol.dispose ?? Symbol.for('dispose')]() {
		this.free();
	}

	#page(from, to) {
		const rows = JSON.parse(this.#opened.records(from, to));
		return rows.map(([path, cid, offset, length]) => ({
			path,
			cid,
			offset,
			bytes: this.#bytes.subarray(offset, offset + length),
		}));
	}
}

/** Records that are read together. */
const PAGE = 1000;
