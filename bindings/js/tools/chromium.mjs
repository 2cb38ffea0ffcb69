// Runs the comparison and the examples in Chromium, in a page and in a worker: `node chromium.mjs CHROMIUM PROJECT CASES`
import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

import { chromium } from 'playwright-core';

const [executablePath, project, cases] = process.argv.slice(2);

const TYPES = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm', '.json': 'application/json' };

const PAGE = `<!doctype html><title>wireproof</title><script type="importmap">{ "imports": {
	"wireproof": "/node_modules/wireproof/js/index.js",
	"wireproof/manual": "/node_modules/wireproof/js/manual.js"
} }</script>`;

const server = createServer(({ url }, response) => {
	if (url === '/') {
		response.setHeader('content-type', 'text/html');
		// What a page needs at least: no evaluation of text.
		response.setHeader('content-security-policy', "default-src 'self'; script-src 'self' 'unsafe-inline' blob: 'wasm-unsafe-eval'");
		response.end(PAGE);
		return;
	}
	const file = url === '/cases.json' ? join(cases, 'cases.json') : join(project, normalize(url));
	if (!existsSync(file)) {
		response.statusCode = 404;
		response.end();
		return;
	}
	response.setHeader('content-type', TYPES[extname(file)] ?? 'text/plain');
	createReadStream(file).pipe(response);
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));

// A container has no rights to make a sandbox of its own; the page is our own.
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const page = await browser.newPage();
page.on('pageerror', (error) => console.error(error.message));
await page.goto(`http://127.0.0.1:${server.address().port}/`);

const inPage = await page.evaluate(async () => {
	const [wireproof, { compare }, cases] = await Promise.all([
		import('wireproof'),
		import('/tests/verdicts.mjs'),
		fetch('/cases.json').then((response) => response.json()),
	]);
	const { cases: count, differences } = await compare(wireproof, cases);
	return { count, differences: differences.slice(0, 3) };
});

const inWorker = await page.evaluate(() => {
	const worker = new Worker('/tests/browser-worker.mjs', { type: 'module' });
	return new Promise((resolve, reject) => {
		worker.onmessage = ({ data }) => resolve(data);
		worker.onerror = ({ message }) => reject(new Error(message));
	});
});

const examples = await page.evaluate(async () => {
	const { examplesIn, moduleOf, provide } = await import('/tests/examples.mjs');
	const readme = await (await fetch('/tests/README.md')).text();
	const cases = await (await fetch('/cases.json')).json();
	const wasm = await (await fetch('/node_modules/wireproof/js/wasm/wireproof_bg.wasm')).arrayBuffer();
	provide(cases, wasm);
	const codes = examplesIn(readme);
	for (const code of codes) {
		await import(URL.createObjectURL(new Blob([moduleOf(code)], { type: 'text/javascript' })));
	}
	return codes.length;
});

await browser.close();
server.close();
const faults = [...inPage.differences, ...inWorker.differences];
faults.forEach((fault) => console.error(JSON.stringify(fault)));
console.log(
	`Chromium: ${inPage.count} verdicts in a page, ${inWorker.count} in a worker, ${examples} examples, ${faults.length} differences`,
);
process.exitCode = faults.length > 0 || inPage.count === 0 || inWorker.count === 0 || examples < 7 ? 1 : 0;
