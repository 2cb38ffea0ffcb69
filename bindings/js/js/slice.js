/** Slices of repositories: one record, or all records of some collections. */

import { bytesOf, call } from './error.js';
import { keyArguments, limitsOf } from './key.js';
import { verify_range, verify_record } from './wasm/wireproof.js';

export function verifyRecord(bytes, path, options) {
	const car = bytesOf(bytes, 'bytes');
	const { kind, text, did } = keyArguments(options);
	const proof = JSON.parse(call(() => verify_record(car, path, kind, text, did, limitsOf(options))));
	return { ...proof, record: proof.record && recordOf(car, proof.record) };
}

export function verifyRange(bytes, collections, options) {
	const car = bytesOf(bytes, 'bytes');
	if (!Array.isArray(collections)) {
		throw new TypeError('collections: expected an array of names');
	}
	const { kind, text, did } = keyArguments(options);
	const json = call(() => verify_range(car, collections, kind, text, did, limitsOf(options)));
	const proof = JSON.parse(json);
	return { ...proof, records: proof.records.map((record) => recordOf(car, record)) };
}

function recordOf(car, { path, cid, offset, length, invalid }) {
	return { path, cid, offset, bytes: car.subarray(offset, offset + length), invalid };
}
