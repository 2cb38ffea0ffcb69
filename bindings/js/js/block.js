/** Blocks of archives and frames, by the places that the module has found. */

import { Reader } from './cbor.js';
import { Cid } from './cid.js';

/** A block, whose parts are made at the first access: most callers need few of them. */
export class Block {
	#source;
	#cidAt;
	#start;
	#end;
	#flags;
	#cid;
	#bytes;
	#value;

	/** @param offset where the data starts in the archive, if `source` is not all of it */
	constructor(source, places, at, offset) {
		this.#source = source;
		this.#cidAt = places[at];
		this.#start = places[at] + places[at + 1];
		this.#end = this.#start + places[at + 2];
		this.#flags = places[at + 3];
		this.offset = offset ?? this.#start;
	}

	get cid() {
		return (this.#cid ??= new Cid(this.#source, this.#cidAt, this.#start));
	}

	get bytes() {
		return (this.#bytes ??= this.#source.subarray(this.#start, this.#end));
	}

	get proved() {
		return (this.#flags & 1) !== 0;
	}

	get canonical() {
		return (this.#flags & 2) !== 0;
	}

	get value() {
		if (this.#value === undefined && this.canonical) {
			this.#value = new Reader(this.#source, this.#start).value();
		}
		return this.#value;
	}
}

/** Numbers that describe a block. */
export const BLOCK_FIELDS = 4;

/** The blocks whose places are from `from` to `to`, and whose data starts at `offsets` where that is another place. */
export function blocksOf(bytes, places, from = 0, to = places.length, offsets = undefined) {
	const blocks = new Array((to - from) / BLOCK_FIELDS);
	for (let index = 0; index < blocks.length; index++) {
		blocks[index] = new Block(bytes, places, from + BLOCK_FIELDS * index, offsets?.[index]);
	}
	return blocks;
}
