/**
 * Frames with the firehose consumer of the reference SDK, @atproto/sync. A frame takes the path of
 * its Firehose: decoded by @atproto/xrpc-server, validated by the lexicon, then parseEvt, which verifies the signature
 * and a proof for each operation. Keys come from a resolver that has them; there are no network requests.
 */

import { Firehose } from '@atproto/sync';
import { Frame } from '@atproto/xrpc-server';

export const CHECKS = ['cid-sha256', 'low-s'];

/**
 * Returns a function that judges a frame of accounts with these keys: it returns the events that the Firehose delivers, or throws the
 * error that it reports.
 */
export function judgeOf(keys) {
	const firehose = firehoseOf(keys);
	return async (bytes) => firehose.parseEvt(validated(firehose, Frame.fromBytes(bytes)));
}

/** Throws the error that the Firehose reports. It has no state between frames, so only the last one is passed to it. */
export async function judgeInOrder(frames, did, signingKey) {
	const firehose = firehoseOf({ [did]: signingKey });
	const frame = Frame.fromBytes(frames.at(-1));
	if (frame.isError()) {
		return;
	}
	const event = validated(firehose, frame);
	const delivered = await firehose.parseEvt(event);
	if (delivered.length < (event.ops?.length ?? 0)) {
		throw new Error(`${delivered.length} of ${event.ops.length} operations are delivered`);
	}
}

/** The steps of the Firehose's Subscription before it passes a message on. */
function validated(firehose, { header, body }) {
	const { method, validate } = firehose.sub.opts;
	return validate({ ...body, $type: method + header.t });
}

function firehoseOf(keys) {
	return new Firehose({
		idResolver: resolverOf(keys),
		unauthenticatedHandles: true,
		handleEvent: () => {},
		onError: (report) => {
			throw report.cause;
		},
	});
}

function resolverOf(keys) {
	const resolveAtprotoKey = async (asked) => {
		if (!Object.hasOwn(keys, asked)) {
			throw new Error(`no key of ${asked}`);
		}
		return keys[asked];
	};
	return { did: { resolveAtprotoKey, resolve: async () => null } };
}
