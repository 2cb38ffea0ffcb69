/** Blocks of archives and frames, by the places that the module has found. */

import { decodeChecked } from './cbor.js';
import { Cid } from './cid.js';

export class Block {
	#value;

	/** @param offset where the data starts in the archive, if `bytes` are not all of it */
	constructor(bytes, places, at, offset) {
		const [cidAt, cidLength, length, flags] = [places[at], places[at + 1], places[at + 2], places[at + 3]];
		this.cid = new Cid(bytes.subarray(cidAt, cidAt + cidLength));
		const start = cidAt + cidLength;
		this.offset = offset ?? start;
		this.bytes = bytes.subarray(start, start + length);
		this.proved = (flags & 1) !== 0;
		this.canonical = (flags & 2) !== 0;
	}

	/** The value, which is made at the first access; undefined if the data is not canonical DAG-CBOR. */
	get value() {
		if (this.#value === undefined && this.canonical) {
			this.#value = decodeChecked(this.bytes);
		}
		return this.#value;
	}
}

/** Numbers that describe a block. */
const FIELDS = 4;

/** The blocks whose places start at `from`, and whose data starts at `offsets` where that is another place. */
export function blocksOf(bytes, places, from, offsets) {
	const blocks = [];
	for (let at = from; at < places.length; at += FIELDS) {
		blocks.push(new Block(bytes, places, at, offsets?.[blocks.length]));
	}
	return blocks;
}
