/** The pieces of a stream of bytes, none so large that it would make the memory of the module grow much. */

import { bytesOf } from './error.js';

export async function* pieces(source, signal) {
	signal?.throwIfAborted();
	const chunks = chunksOf(source);
	const abortion = abortionOf(signal);
	let isOver = false;
	try {
		for (;;) {
			const { done, value } = await abortion.orNext(chunks.next());
			if (done) {
				isOver = true;
				return;
			}
			const bytes = bytesOf(value, 'source');
			for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
				yield bytes.subarray(at, at + PIECE_BYTES);
			}
		}
	} finally {
		abortion.forget();
		if (!isOver) {
			// A source that waits for its next chunk ends once that has come: nobody waits for it here.
			Promise.resolve(chunks.return?.()).catch(() => {});
		}
	}
}

/** The iterator of a source. */
function chunksOf(source) {
	if (typeof source?.getReader === 'function') {
		const reader = source.getReader();
		return { next: () => reader.read(), return: () => reader.cancel() };
	}
	const iterator = source?.[Symbol.asyncIterator]?.() ?? source?.[Symbol.iterator]?.();
	if (iterator === undefined) {
		throw new TypeError('source: expected bytes, a ReadableStream or an async iterable of bytes');
	}
	return iterator;
}

/** The end that a signal may bring about while a chunk is awaited. */
function abortionOf(signal) {
	if (signal === undefined) {
		return { orNext: (next) => next, forget: () => {} };
	}
	let abort;
	const aborted = new Promise((_, reject) => {
		abort = () => reject(signal.reason);
	});
	aborted.catch(() => {});
	signal.addEventListener('abort', abort, { once: true });
	return {
		orNext: (next) => Promise.race([next, aborted]),
		forget: () => signal.removeEventListener('abort', abort),
	};
}

const PIECE_BYTES = 64 << 10;
