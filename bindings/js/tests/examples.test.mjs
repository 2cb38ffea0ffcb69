import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';

import { examplesIn, moduleOf, provide } from './examples.mjs';

const cases = JSON.parse(readFileSync(join(process.env.WIREPROOF_CASES, 'cases.json'), 'utf8'));
const examples = examplesIn(readFileSync(new URL('./README.md', import.meta.url), 'utf8'));
provide(cases, readFileSync(new URL('../node_modules/wireproof/js/wasm/wireproof_bg.wasm', import.meta.url)));

test('there are examples', () => assert.ok(examples.length > 6));

for (const [at, code] of examples.entries()) {
	test(`example ${at + 1} of the README runs`, async () => {
		const file = new URL(`./example-${at}.mjs`, import.meta.url);
		writeFileSync(file, moduleOf(code));
		const printed = [];
		const { log } = console;
		console.log = (...words) => printed.push(words);
		try {
			await import(pathToFileURL(file.pathname));
		} finally {
			console.log = log;
		}
		assert.ok(printed.length > 0, code);
	});
}
