/** Blocks of archives and frames, by the places that the module has found. */

import { decodeChecked } from './cbor.js';
import { Cid } from './cid.js';

export class Block {
	#value;

	constructor(bytes, places, at) {
		const [cidAt, cidLength, length, flags] = [places[at], places[at + 1], places[at + 2], places[at + 3]];
		this.cid = new Cid(bytes.subarray(cidAt, cidAt + cidLength));
		this.offset = cidAt + cidLength;
		this.bytes = bytes.subarray(this.offset, this.offset + length);
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

/** The blocks whose places start at `from`. */
export function blocksOf(bytes, places, from) {
	const blocks = [];
	for (let at = from; at < places.length; at += FIELDS) {
		blocks.push(new Block(bytes, places, at));
	}
	return blocks;
}
