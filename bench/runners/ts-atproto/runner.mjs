/**
 * Turns the JavaScript peer into a runner: implements the protocol of ../PROTOCOL.md and times the passes.
 * Loading and counting are in work.mjs, the calls of the peer in sigs.mjs, mst.mjs, repo.mjs and frames.mjs.
 */

import { createInterface } from 'node:readline';

import * as sigs from './sigs.mjs';
import * as work from './work.mjs';

/** @type {work.Work | undefined} */
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
			loaded = await load(request);
			return { units: loaded.units, bytes: loaded.bytes };
		case 'prove':
			return ready().prove();
		case 'pass':
			return pass(ready());
		default:
			throw new Error(`unknown request ${request.cmd}`);
	}
}

function describe() {
	const checks = ([name, variant]) => [name, variant.checks];
	const tasks = Object.entries(work.TASKS).map(([task, variants]) => [
		task,
		Object.fromEntries(Object.entries(variants).map(checks)),
	]);
	return {
		engine: `${sigs.ENGINE}, @atproto/repo ${sigs.versionOf('@atproto/repo')} and sync on Node ${process.versions.node}`,
		version: sigs.VERSION,
		language: 'typescript',
		tasks: Object.fromEntries(tasks),
	};
}

function load({ task, variant, files }) {
	const variants = work.TASKS[task] ?? {};
	if (!Object.hasOwn(variants, variant)) {
		throw new Error(`no variant ${variant} of task ${task} here`);
	}
	return variants[variant].load(files);
}

function ready() {
	if (loaded === undefined) {
		throw new Error('nothing is loaded');
	}
	return loaded;
}

async function pass(work) {
	const start = process.hrtime.bigint();
	const stages = await work.pass();
	const ns = Number(process.hrtime.bigint() - start);
	return stages === undefined ? { ns } : { ns, stages_ns: stages };
}
