/**
 * The task `hostile` with @atcute/repo. fromUint8Array reads a repository, checks the shape of the tree and hashes
 * nothing; verifyRecord verifies one record at a time. Its users need both calls: read, then verify
 * each record that was found. A repository without records is only read.
 *
 * Its firehose client verifies nothing: there are no `frames` here.
 */

import { readFileSync } from 'node:fs';

import { P256PublicKey, parseDidKey, Secp256k1PublicKey } from '@atcute/crypto';
import { fromUint8Array, verifyRecord } from '@atcute/repo';

export const VARIANTS = { repo: ['cid-sha256', 'low-s', 'complete', 'mst-prefix', 'record-cbor'] };

const KEYS = { p256: P256PublicKey, secp256k1: Secp256k1PublicKey };

/** Reads the case: a CAR, and a JSON with the account's DID and key. */
export async function load([path, beside]) {
	const file = readFileSync(path);
	const carBytes = new Uint8Array(file.buffer, file.byteOffset, file.length);
	const { did, signing_key } = JSON.parse(readFileSync(beside, 'utf8'));
	const { type, publicKeyBytes } = parseDidKey(signing_key);
	const publicKey = await KEYS[type].importRaw(publicKeyBytes);
	return { units: 1, bytes: carBytes.length, prove: () => prove({ carBytes, did, publicKey }) };
}

async function prove(repository) {
	try {
		await verify(repository);
		return { counts: { accepted: 1, refused: 0 } };
	} catch (refusal) {
		return { counts: { accepted: 0, refused: 1 }, reason: String(refusal) };
	}
}

async function verify(repository) {
	for (const { collection, rkey } of fromUint8Array(repository.carBytes)) {
		await verifyRecord({ ...repository, collection, rkey });
	}
}
