/**
 * Verifies a repository with the reference SDK. Its verifyRepoCar is two calls: the CAR is read and every
 * block hashed, then the commit is verified and the tree walked. The walk's time is in the stage `signature`.
 */

import { cborToLex, readCarWithRoot, verifyRepo, verifyRepoCar } from '@atproto/repo';

/** No `mst-*`: a node is accepted with any prefix, in any order, in any layer. Missing nodes and records are detected. */
export const CHECKS = ['cid-sha256', 'low-s', 'complete'];

export const verify = verifyRepoCar;

export async function count(archive, did, signingKey) {
	const { root, blocks } = await readCarWithRoot(archive);
	const { creates } = await verifyRepo(blocks, root, did, signingKey);
	return {
		repositories: 1,
		blocks: blocks.size,
		records: creates.length,
		record_bytes: creates.reduce((sum, { cid }) => sum + blocks.get(cid).length, 0),
		valid: 1,
		root: String(cborToLex(blocks.get(root)).data),
	};
}

/** Returns the nanoseconds of each stage and the results. */
export async function verifyInStages(archive, did, signingKey, done) {
	const start = process.hrtime.bigint();
	const { root, blocks } = await readCarWithRoot(archive);
	const parsed = process.hrtime.bigint();
	done(await verifyRepo(blocks, root, did, signingKey));
	const verified = process.hrtime.bigint();
	return { parse: Number(parsed - start), signature: Number(verified - parsed) };
}
