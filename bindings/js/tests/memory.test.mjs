import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';

const cases = process.env.WIREPROOF_CASES;
const car = join(cases, 'large.car');

/** Verifies the repository in a process of its own, and prints what its memory grew by. */
const PROGRAM = `
	import { createReadStream, readFileSync } from 'node:fs';
	import { join } from 'node:path';
	import { verifyRepository } from 'wireproof';
	const [folder] = process.argv.slice(1);
	const owner = JSON.parse(readFileSync(join(folder, 'large.json'), 'utf8'));
	const before = process.memoryUsage.rss();
	const start = performance.now();
	const { records, bytes } = await verifyRepository(createReadStream(join(folder, 'large.car')), owner);
	const ms = performance.now() - start;
	console.log(JSON.stringify({ records, bytes, ms, grown: process.resourceUsage().maxRSS * 1024 - before }));
`;

test('a repository of 70 MB is verified from a stream in 64 MB', () => {
	const { size } = statSync(car);
	assert.ok(size > 65_000_000 && size < 80_000_000, `${size} bytes`);
	const output = execFileSync(process.execPath, ['--input-type=module', '-e', PROGRAM, cases], { encoding: 'utf8' });
	console.log(output.trim());
	const { records, bytes, grown } = JSON.parse(output);
	assert.deepEqual([records, bytes], [230_000, size]);
	assert.ok(grown <= 64_000_000, `${grown} bytes more`);
});
