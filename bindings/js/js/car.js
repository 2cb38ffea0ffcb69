/** CAR archives. */

import { blocksOf } from './block.js';
import { Cid } from './cid.js';
import { bytesOf, call } from './error.js';
import { car_places } from './wasm/wireproof.js';

export function decodeCar(bytes) {
	const input = bytesOf(bytes, 'bytes');
	const places = call(() => car_places(input));
	const roots = [];
	const end = 1 + 2 * places[0];
	for (let at = 1; at < end; at += 2) {
		roots.push(new Cid(input.subarray(places[at], places[at] + places[at + 1])));
	}
	return { roots, blocks: blocksOf(input, places, end) };
}
