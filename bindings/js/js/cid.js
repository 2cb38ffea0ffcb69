/** Content identifiers: bytes, and their text once it is asked for. */

export class Cid {
	#source;
	#start;
	#end;
	#text;

	/** The bytes from `start` to `end`, of which a view is made at the first access. */
	constructor(bytes, start = 0, end = bytes.length) {
		this.#source = bytes;
		this.#start = start;
		this.#end = end;
	}

	get bytes() {
		if (this.#start !== 0 || this.#end !== this.#source.length) {
			this.#source = this.#source.subarray(this.#start, this.#end);
			this.#start = 0;
			this.#end = this.#source.length;
		}
		return this.#source;
	}

	/** The codec of a CID of version 1 of less than 128, such as 0x71 for DAG-CBOR; undefined otherwise. */
	get codec() {
		return this.bytes[0] === 1 && this.bytes[1] < 0x80 ? this.bytes[1] : undefined;
	}

	equals(other) {
		return (
			other instanceof Cid &&
			other.bytes.length === this.bytes.length &&
			other.bytes.every((byte, at) => byte === this.bytes[at])
		);
	}

	toString() {
		this.#text ??= this.bytes[0] === 0x12 ? base58(this.bytes) : `b${base32(this.bytes)}`;
		return this.#text;
	}

	toJSON() {
		return { $link: this.toString() };
	}
}

function base32(bytes) {
	let text = '';
	let bits = 0;
	let value = 0;
	for (const byte of bytes) {
		value = (value << 8) | byte;
		bits += 8;
		while (bits >= 5) {
			bits -= 5;
			text += BASE32[(value >>> bits) & 31];
		}
		value &= 31;
	}
	return bits > 0 ? text + BASE32[(value << (5 - bits)) & 31] : text;
}

/** CIDs of version 0 only, which have 34 bytes and no leading zero. */
function base58(bytes) {
	let number = bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
	let text = '';
	while (number > 0n) {
		text = BASE58[Number(number % 58n)] + text;
		number /= 58n;
	}
	return text;
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
