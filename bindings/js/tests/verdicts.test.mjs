import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';

import * as wireproof from 'wireproof';

import { compare } from './verdicts.mjs';

const { seeds, cases } = JSON.parse(readFileSync(join(process.env.WIREPROOF_CASES, 'cases.json'), 'utf8'));

test('every verdict is the verdict of the library', async () => {
	const { differences } = await compare(wireproof, { seeds, cases });
	assert.deepEqual(differences.slice(0, 3), []);
	assert.ok(cases.length > seeds.length && seeds.length > 500);
});

test('every hostile case has the code that the set requires', () => {
	const required = cases.filter(({ seed, changes }) => changes.length === 0 && seeds[seed].code !== null);
	assert.ok(required.length > 200);
	for (const { seed, verdict } of required) {
		assert.ok(codesOf(verdict).includes(seeds[seed].code), `${seeds[seed].name}: ${JSON.stringify(verdict)}`);
	}
});

/** The codes in a verdict: of a refusal, of an invalid record, or of the last of several frames. */
function codesOf({ ok, fault }) {
	const last = Array.isArray(ok) ? ok.at(-1) : undefined;
	const records = [...(Array.isArray(ok?.records) ? ok.records : []), ...(last?.ops ?? [])];
	return [fault?.code, ok?.firstInvalid?.code, last?.code, last?.gap, ...records.map(({ invalid }) => invalid?.code)];
}
