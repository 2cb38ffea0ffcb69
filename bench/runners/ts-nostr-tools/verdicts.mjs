/**
 * Prints the verdict of JSON.parse and verifyEvent on each event of standard input. A line is the event's row in the table of
 * docs/formats/nostr/json.md, the name of a field, and the text, separated by tabs; so is the answer, with the verdict as its third part.
 */

import { createInterface } from 'node:readline';

import { VALIDATE } from './events.mjs';

for await (const line of createInterface({ input: process.stdin })) {
	const [row, field, text] = line.split('\t');
	console.log([row, field, verdict(Buffer.from(text))].join('\t'));
}

function verdict(bytes) {
	try {
		return VALIDATE['json/pure'](bytes) ? 'valid' : 'invalid';
	} catch {
		return 'rejected';
	}
}
