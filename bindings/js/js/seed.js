/** The secret by which a table places keys that others choose: a module has no random numbers of its own. */

export function newSeed() {
	return globalThis.crypto.getRandomValues(new Uint8Array(16));
}
