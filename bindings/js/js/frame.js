/** Frames of com.atproto.sync.subscribeRepos. */

import { BLOCK_FIELDS, blocksOf } from './block.js';
import { Reader } from './cbor.js';
import { bytesOf, call } from './error.js';
import { bytesOfMemory, numbersOfMemory } from './memory.js';
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
		const room = this.#frames.room(input.length);
		bytesOfMemory().set(input, room);
		const at = call(() => this.#frames.places(input.length));
		return frameOf(input, numbersOfMemory(), at >>> 2);
	}

	free() {
		this.#frames.free();
	}

	[Symbol.dispose ?? Symbol.for('dispose')]() {
		this.free();
	}
}

/** The frame whose places are at `at`: the offset of its payload, the number of its blocks, and the places of each. */
function frameOf(input, places, at) {
	const header = new Reader(input).value();
	const payload = new Reader(input, places[at]).value();
	const kind = header.op === -1 ? 'error' : (KINDS.get(header.t) ?? 'unknown');
	const frame = kind === 'unknown' ? { payload } : payload;
	frame.kind = kind;
	frame.type = header.t;
	frame.blocks = blocksOf(input, places, at + 2, at + 2 + BLOCK_FIELDS * places[at + 1]);
	return frame;
}
