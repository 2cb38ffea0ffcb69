/** Single signatures of the AT Protocol. */

import { bytesOf, call } from './error.js';
import { verify_signature } from './wasm/wireproof.js';

export function verifySignature(message, signature, key) {
	const [signed, sig] = [bytesOf(message, 'message'), bytesOf(signature, 'signature')];
	return JSON.parse(call(() => verify_signature(signed, sig, String(key))));
}
