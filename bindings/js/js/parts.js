/** Many inputs in one buffer, for one call of the module. */

export function joined(parts) {
	const ends = new Uint32Array(parts.length);
	let length = 0;
	for (let at = 0; at < parts.length; at++) {
		length += parts[at].length;
		ends[at] = length;
	}
	const bytes = new Uint8Array(length);
	for (let at = 0; at < parts.length; at++) {
		bytes.set(parts[at], ends[at] - parts[at].length);
	}
	return { bytes, ends };
}
