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
	let tree = await MST.create(new MemoryBlockstore());
	for (const { key, cid } of records) {
		tree = await tree.add(key, cid);
	}
	return tree;
}

/** The first four bytes of the digest. */
export function checksumOf({ multihash: { digest } }) {
	return new DataView(digest.buffer, digest.byteOffset).getUint32(0);
}
