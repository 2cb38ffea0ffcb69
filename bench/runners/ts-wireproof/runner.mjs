/**
 * Our own npm package as a runner: implements the protocol of ../PROTOCOL.md and times the passes. The argument is the folder of
 * the package. Its calls are in work.mjs.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { tasksOf } from './work.mjs';

const [folder] = process.argv.slice(2);
const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
const tasks = tasksOf(await import(join(folder, 'js/node.js')));

/** @type {import('./work.mjs').Work | undefined} */
let loaded;

for await (const line of createInterface({ input: process.stdin })) {
	let answer;
	try {
		answer = await obey(JSON.parse(line));
	} catch (fault) {
		answer = { error: String(fault) };
	}
	process.stdout.write(JSON.stringify(answer) + '\n');
}

async function obey(request) {
	switch (request.cmd) {
		case 'describe':
			return describe();
		case 'load':
			loaded = tasks[request.task][request.variant].load(request.files);
			return { units: loaded.units, bytes: loaded.bytes };
		case 'prove':
			return loaded.prove();
		case 'pass':
			return { ns: await pass(loaded) };
		default:
			throw new Error(`unknown request ${request.cmd}`);
	}
}

function describe() {
	const checks = (variants) => Object.fromEntries(Object.entries(variants).map(([name, { checks }]) => [name, checks]));
	return {
		engine: `wireproof ${version} in WebAssembly on Node ${process.versions.node}`,
		version,
		language: 'typescript',
		tasks: Object.fromEntries(Object.entries(tasks).map(([task, variants]) => [task, checks(variants)])),
	};
}

async function pass(work) {
	const start = process.hrtime.bigint();
	await work.pass();
	return Number(process.hrtime.bigint() - start);
}
