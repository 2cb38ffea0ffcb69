/**
 * Frames with the firehose consumer of the reference SDK, @atproto/sync. A frame takes the path of
 * its Firehose: decoded by @atproto/xrpc-server, validated by the lexicon, then parseEvt, which verifies the signature
 * and a proof for each operation. The key comes from a resolver with one account; there are no network requests.
 */

import { Firehose } from '@atproto/sync';
import { Frame } from '@atproto/xrpc-server';

export const CHECKS = ['cid-sha256', 'low-s'];

/** Throws the error that the Firehose reports. It has no state between frames, so only the last one is passed to it. */
export async function judgeInOrder(frames, did, signingKey) {
	const firehose = new Firehose({
		idResolver: resolverOf(did, signingKey),
		unauthenticatedHandles: true,
		handleEvent: () => {},
		onError: (report) => {
			throw report.cause;
		},
	});
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

function resolverOf(did, signingKey) {
	const resolveAtprotoKey = async (asked) => {
		if (asked !== did) {
			throw new Error(`no key of ${asked}`);
		}
		return signingKey;
	};
	return { did: { resolveAtprotoKey, resolve: async () => null } };
}
