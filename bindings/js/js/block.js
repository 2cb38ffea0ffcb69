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
const FIELDS = 4;

/** The blocks whose places start at `from`, and whose data starts at `offsets` where that is another place. */
export function blocksOf(bytes, places, from, offsets) {
	const blocks = [];
	for (let at = from; at < places.length; at += FIELDS) {
		blocks.push(new Block(bytes, places, at, offsets?.[blocks.length]));
	}
	return blocks;
}
