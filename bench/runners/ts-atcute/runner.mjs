/**
 * Turns the JavaScript peer into a runner: implements the protocol of ../PROTOCOL.md, splits the corpus,
 * times the passes and sums up the counts. The calls of the peer are in decode.mjs and hostile.mjs.
 */

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

import * as decode from './decode.mjs';
import * as hostile from './hostile.mjs';

const TOLD_REFUSALS = 5;
const ENGINE = `${decode.ENGINE}; @atcute/repo ${decode.versionOf('@atcute/repo')}`;

/** The checks of each variant of each task. */
const TASKS = {
	decode: Object.fromEntries(Object.entries(decode.VARIANTS).map(([name, { checks }]) => [name, checks])),
	hostile: hostile.VARIANTS,
};

/** @type {{ units: number, bytes: number, prove: () => object, pass?: () => void } | undefined} */
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
			return { engine: ENGINE, version: decode.VERSION, language: 'typescript', tasks: TASKS };
		case 'load':
			loaded = await load(request);
			return { units: loaded.units, bytes: loaded.bytes };
		case 'prove':
			return ready().prove();
		case 'pass':
			return { ns: pass(ready()) };
		default:
			throw new Error(`unknown request ${request.cmd}`);
	}
}

function load({ task, variant, files }) {
	if (!Object.hasOwn(TASKS[task] ?? {}, variant)) {
		throw new Error(`no variant ${variant} of task ${task} here`);
	}
	return task === 'hostile' ? hostile.load(files) : loadFrames(decode.VARIANTS[variant].decodeFrame, files);
}

function loadFrames(decodeFrame, files) {
	const frames = files.flatMap(readFrames);
	return {
		units: frames.length,
		bytes: frames.reduce((sum, frame) => sum + frame.length, 0),
		prove: () => ({ counts: countFrames(decodeFrame, frames) }),
		pass: () => decodeFrames(decodeFrame, frames),
	};
}

function ready() {
	if (loaded === undefined) {
		throw new Error('nothing is loaded');
	}
	return loaded;
}

function countFrames(decodeFrame, frames) {
	const total = decode.noCounts();
	let errors = 0;
	for (const [index, frame] of frames.entries()) {
		const counts = decode.noCounts();
		try {
			decodeFrame(frame, (block) => decode.count(block, counts));
			for (const name of Object.keys(total)) {
				total[name] += counts[name];
			}
		} catch (refusal) {
			if (++errors <= TOLD_REFUSALS) {
				console.error(`frame ${index} refused: ${refusal}`);
			}
		}
	}
	return { frames: frames.length, errors, ...total };
}

function decodeFrames(decodeFrame, frames) {
	for (const frame of frames) {
		try {
			decodeFrame(frame, barrier);
		} catch {
			// Counted by `prove`.
		}
	}
}

function pass(work) {
	const start = process.hrtime.bigint();
	work.pass();
	return Number(process.hrtime.bigint() - start);
}

/** Keeps each value reachable, so that the engine cannot remove its construction. */
function barrier(block) {
	globalThis.lastBlock = block;
}

/** [u32 BE count], then [u32 BE length][frame] for each. A frame is a Uint8Array, as a WebSocket delivers it. */
function readFrames(path) {
	const file = readFileSync(path);
	const bytes = new Uint8Array(file.buffer, file.byteOffset, file.length);
	const frames = [];
	let offset = 4;
	for (let left = file.readUInt32BE(0); left > 0; left--) {
		const end = offset + 4 + file.readUInt32BE(offset);
		if (end > file.length) {
			throw new Error(`${path}: ends inside a frame`);
		}
		frames.push(bytes.subarray(offset + 4, end));
		offset = end;
	}
	if (offset !== file.length) {
		throw new Error(`${path}: bytes after the last frame`);
	}
	return frames;
}
