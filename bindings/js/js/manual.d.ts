/** As `wireproof`, for callers that load the module themselves: call `init` once before anything else. */

/**
 * Loads the module. Bytes and a compiled module are taken at once, a response or an address once it has arrived. The bytes are
 * in the package as `wireproof/wireproof.wasm`.
 */
export function init(
	source: BufferSource | WebAssembly.Module | Response | URL | Request | Promise<Response>,
): Promise<void>;

export * from './index.js';
