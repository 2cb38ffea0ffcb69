/** Nostr events: ids and signatures. */

import { call } from './error.js';
import { joined } from './parts.js';
import { verify_events } from './wasm/wireproof.js';

/** Verifies one event: an object, or its JSON. */
export function verify(event, options) {
	return verifyMany([event], options)[0];
}

export function verifyMany(events, { ids = 'either' } = {}) {
	const { bytes, ends } = joined(Array.from(events, jsonOf));
	return JSON.parse(call(() => verify_events(bytes, ends, ids)));
}

function jsonOf(event, at) {
	if (event instanceof Uint8Array) {
		return event;
	}
	if (typeof event === 'string') {
		return ENCODER.encode(event);
	}
	if (typeof event === 'object' && event !== null) {
		return ENCODER.encode(JSON.stringify(event));
	}
	throw new TypeError(`events[${at}]: expected an event, its JSON text or its bytes`);
}

const ENCODER = new TextEncoder();
