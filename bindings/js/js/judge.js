/** Commit frames, judged against the keys and the known states of their accounts. */

import { bytesOf, call } from './error.js';
import { joined } from './parts.js';
import { newSeed } from './seed.js';
import { account_of, Judge as Judging } from './wasm/wireproof.js';

export class Judge {
	#judge;

	constructor({ keys, state, ...policy } = {}) {
		this.#judge = call(() => new Judging(JSON.stringify(policy), newSeed()));
		for (const [did, key] of keys instanceof Map ? keys : Object.entries(keys ?? {})) {
			this.setKey(did, key);
		}
		if (state !== undefined) {
			this.importState(state);
		}
	}

	setKey(did, key) {
		call(() => this.#judge.set_key(did, key ?? undefined));
	}

	/** The accounts that frames name and whose key is not set. */
	unknownAccounts(frames) {
		const dids = new Set(frames.map((frame) => account_of(bytesOf(frame, 'frame'))));
		dids.delete(undefined);
		return [...dids].filter((did) => !this.#judge.has_key(did));
	}

	judge(frame, options) {
		return this.judgeMany([frame], options)[0];
	}

	judgeMany(frames, { now = Date.now() } = {}) {
		const inputs = Array.from(frames, (frame, at) => bytesOf(frame, `frames[${at}]`));
		const { bytes, ends } = joined(inputs);
		const outcomes = JSON.parse(this.#judge.judge(bytes, ends, Math.floor(Number(now) * 1000)));
		outcomes.forEach((outcome, at) => setRecords(outcome, inputs[at]));
		return outcomes;
	}

	exportState() {
		return JSON.parse(this.#judge.export_state());
	}

	importState(state) {
		call(() => this.#judge.import_state(JSON.stringify(state)));
	}

	free() {
		this.#judge.free();
	}

	[Symbol.dispose ?? Symbol.for('dispose')]() {
		this.free();
	}
}

/** Replaces the places of records by their bytes. */
function setRecords(outcome, frame) {
	for (const op of outcome.ops) {
		op.record = op.record === null ? undefined : frame.subarray(op.record[0], op.record[0] + op.record[1]);
	}
}
