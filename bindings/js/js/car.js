/** CAR archives. */

import { blocksOf } from './block.js';
import { Cid } from './cid.js';
import { bytesOf, call } from './error.js';
import { pieces } from './pieces.js';
import { car_places, CarPieces } from './wasm/wireproof.js';

export function decodeCar(bytes) {
	const input = bytesOf(bytes, 'bytes');
	const places = call(() => car_places(input));
	const roots = [];
	const end = 1 + 2 * places[0];
	for (let at = 1; at < end; at += 2) {
		roots.push(new Cid(input, places[at], places[at] + places[at + 1]));
	}
	return { roots, blocks: blocksOf(input, places, end) };
}

/** Reads up to the header; the blocks are read as they are asked for. */
export async function decodeCarStream(source, { signal } = {}) {
	const archive = new CarPieces();
	const input = pieces(source, signal);
	try {
		let json = archive.roots();
		while (json === undefined) {
			await pushNext(archive, input);
			json = call(() => archive.roots());
		}
		const roots = JSON.parse(json).map((root) => new Cid(Uint8Array.from(root)));
		return { roots, blocks: blocksIn(archive, input) };
	} catch (error) {
		await input.return();
		archive.free();
		throw error;
	}
}

async function* blocksIn(archive, input) {
	try {
		for (let isOver = false; ; ) {
			const batch = call(() => archive.next_blocks());
			if (batch !== undefined) {
				yield* taken(batch);
			} else if (isOver) {
				return;
			} else {
				isOver = await pushNext(archive, input);
			}
		}
	} finally {
		await input.return();
		archive.free();
	}
}

/** Passes the next piece on; returns whether it was the end. */
async function pushNext(archive, input) {
	const { done, value } = await input.next();
	if (done) {
		archive.end();
	} else {
		archive.push(value);
	}
	return done;
}

function taken(batch) {
	try {
		return blocksOf(batch.bytes(), batch.places(), 0, undefined, batch.offsets());
	} finally {
		batch.free();
	}
}
