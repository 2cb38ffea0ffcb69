import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const folder = process.env.WIREPROOF_PACKAGE;
const files = readdirSync(folder, { recursive: true, withFileTypes: true })
	.filter((entry) => entry.isFile())
	.map((entry) => join(entry.parentPath ?? entry.path, entry.name));

test('the module and its JavaScript have at most 400 KB under Brotli', () => {
	const code = files.filter((file) => /\.(wasm|js)$/.test(file)).map((file) => readFileSync(file));
	const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };
	const size = (compress) => code.reduce((sum, bytes) => sum + compress(bytes).length, 0);
	const [brotli, gzip] = [size((bytes) => brotliCompressSync(bytes, options)), size((bytes) => gzipSync(bytes, { level: 9 }))];
	console.log(`code of the package: ${brotli} bytes under Brotli, ${gzip} under gzip`);
	assert.ok(brotli <= 400_000 && brotli > 100_000, `${brotli} bytes`);
});

test('the module names no folder of the machine that built it', () => {
	const wasm = readFileSync(join(folder, 'js/wasm/wireproof_bg.wasm'), 'latin1');
	const paths = wasm.match(/\/(home|root|tmp|work|Users)\/[\w./-]{3,40}/g) ?? [];
	assert.deepEqual(paths, []);
});

test('every file has its declarations, and names no other package', () => {
	const scripts = files.filter((file) => file.endsWith('.js'));
	assert.ok(scripts.length > 10);
	for (const file of scripts) {
		const imports = Array.from(readFileSync(file, 'utf8').matchAll(/from '([^']+)'/g), ([, name]) => name);
		assert.deepEqual(imports.filter((name) => !name.startsWith('.') && !name.startsWith('node:')), [], file);
	}
});

test('an empty process imports one function and verifies', () => {
	const program = `
		import { cborDecode } from 'wireproof';
		console.log(JSON.stringify(cborDecode(Uint8Array.of(0xa1, 0x61, 0x61, 0x01))));
	`;
	const output = execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
	assert.equal(output, '{"a":1}\n');
	assert.ok(statSync(join(folder, 'README.md')).size > 1000);
});
