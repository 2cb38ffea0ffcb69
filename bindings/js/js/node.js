/** The entry point of Node.js: reads the module from the file that lies next to it. */

import { readFileSync } from 'node:fs';

import { initSync } from './wasm/wireproof.js';

initSync({ module: readFileSync(new URL('./wasm/wireproof_bg.wasm', import.meta.url)) });

export * from './api.js';
