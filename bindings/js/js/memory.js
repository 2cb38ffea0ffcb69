/** Views of the module's memory. A call may move it, so a view is good until the next call. */

import { module_memory } from './wasm/wireproof.js';

let bytes = new Uint8Array();
let numbers = new Uint32Array();

export function bytesOfMemory() {
	if (bytes.length === 0) {
		bytes = new Uint8Array(module_memory().buffer);
	}
	return bytes;
}

export function numbersOfMemory() {
	if (numbers.length === 0) {
		numbers = new Uint32Array(module_memory().buffer);
	}
	return numbers;
}
