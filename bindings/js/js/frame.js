/** Frames of com.atproto.sync.subscribeRepos. */

import { blocksOf } from './block.js';
import { Reader } from './cbor.js';
import { bytesOf, call } from './error.js';
import { Frames } from './wasm/wireproof.js';

/** A map, as the names of an object's own methods are types that a frame may state. */
const KINDS = new Map([
	['#commit', 'commit'],
	['#sync', 'sync'],
	['#identity', 'identity'],
	['#account', 'account'],
	['#info', 'info'],
]);

/** Decodes a frame with a reader of its own; a FrameDecoder keeps its memory. */
export function decodeFrame(bytes) {
	const decoder = new FrameDecoder();
	try {
		return decoder.decode(bytes);
	} finally {
		decoder.free();
	}
}

export class FrameDecoder {
	#frames = new Frames();

	decode(bytes) {
		const input = bytesOf(bytes, 'bytes');
		const places = call(() => this.#frames.places(input));
		const header = new Reader(input).value();
		const payload = new Reader(input, places[0]).value();
		const kind = header.op === -1 ? 'error' : (KINDS.get(header.t) ?? 'unknown');
		const blocks = blocksOf(input, places, 1);
		const fields = kind === 'unknown' ? { payload } : payload;
		return { ...fields, kind, type: header.t, blocks };
	}

	free() {
		this.#frames.free();
	}

	[Symbol.dispose ?? Symbol.for('dispose')]() {
		this.free();
	}
}
