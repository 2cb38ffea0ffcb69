/**
 * Turns the JavaScript peer into a runner: implements the protocol of ../PROTOCOL.md. Loading and counting are
 * in work.mjs, the calls of the peer in calls.mjs.
 */

import { createInterface } from 'node:readline';

import { ENGINE, VERSION } from './calls.mjs';
import { TASKS } from './work.mjs';

/** @type {import('./work.mjs').Work | undefined} */
let loaded;

for await (const line of createInterface({ input: process.stdin })) {
	let answer;
	try {
		answer = obey(JSON.parse(line));
	} catch (fault) {
		answer = { error: String(fault) };
	}
	process.stdout.write(JSON.stringify(answer) + '\n');
}

function obey({ cmd, task, variant, files }) {
	switch (cmd) {
		case 'describe':
			return { engine: ENGINE, version: VERSION, language: 'typescript', tasks: checksOf(TASKS) };
		case 'load':
			if (!Object.hasOwn(TASKS[task] ?? {}, variant)) {
				throw new Error(`no variant ${variant} of task ${task} here`);
			}
			loaded = TASKS[task][variant].load(files);
			return { units: loaded.units, bytes: loaded.bytes };
		case 'prove':
			return ready().prove();
		case 'pass':
			return pass(ready());
		default:
			throw new Error(`unknown request ${cmd}`);
	}
}

/** The checks of each variant of each task. */
function checksOf(tasks) {
	const checks = (variants) => Object.fromEntries(Object.entries(variants).map(([name, { checks }]) => [name, checks]));
	return Object.fromEntries(Object.entries(tasks).map(([task, variants]) => [task, checks(variants)]));
}

function pass(work) {
	const start = process.hrtime.bigint();
	work.pass();
	return { ns: Number(process.hrtime.bigint() - start) };
}

function ready() {
	if (loaded === undefined) {
		throw new Error('nothing is loaded');
	}
	return loaded;
}
