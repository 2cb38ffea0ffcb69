/**
 * The trees of the reference SDK. They are immutable: each insertion copies the nodes on its path.
 * There is no call that builds a tree from many records.
 */

import { decodeCid } from '@atproto/lex-data';
import { MemoryBlockstore, MST } from '@atproto/repo';

/** A record in the library's form. */
export function record(key, cid) {
	return { key: Buffer.from(key).toString('latin1'), cid: decodeCid(cid) };
}

/** @returns {Promise<MST>} the tree of all records, inserted one by one */
export async function build(records) {
	let tree = await empty();
	for (const { key, cid } of records) {
		tree = await tree.add(key, cid);
	}
	return tree;
}

/** The same text in memory of its own. */
export function copyOf(key) {
	return Buffer.from(key, 'latin1').toString('latin1');
}

/** @returns {Promise<MST>} a tree without records */
export function empty() {
	return MST.create(new MemoryBlockstore());
}

/** @returns {Promise<MST>} the tree after an operation; `found` is called with the CID that a lookup finds */
export async function apply(tree, kind, key, cid, found) {
	switch (kind) {
		case 'insert':
			return tree.add(key, cid);
		case 'update':
			return tree.update(key, cid);
		case 'delete':
			return tree.delete(key);
		default: {
			const record = await tree.get(key);
			if (record !== null) {
				found(record);
			}
			return tree;
		}
	}
}

/** The first four bytes of the digest. */
export function checksumOf({ multihash: { digest } }) {
	return new DataView(digest.buffer, digest.byteOffset).getUint32(0);
}
