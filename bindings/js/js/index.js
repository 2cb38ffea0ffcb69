/** The entry point of browsers, workers, Deno and Bun: loads the module that lies next to it. */

import load from './wasm/wireproof.js';

await load({ module_or_path: new URL('./wasm/wireproof_bg.wasm', import.meta.url) });

export * from './api.js';
