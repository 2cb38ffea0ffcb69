/** The entry point for callers that load the module themselves, from a cache or from inside a page. */

import load, { initSync } from './wasm/wireproof.js';

/** Loads the module: a compiled one or its bytes at once, a response or an address once it has arrived. */
export async function init(source) {
	if (source instanceof WebAssembly.Module || source instanceof ArrayBuffer || ArrayBuffer.isView(source)) {
		initSync({ module: source });
	} else {
		await load({ module_or_path: source });
	}
}

export * from './api.js';
