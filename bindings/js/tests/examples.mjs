/** The examples of the README as modules, and the data that they name. */

/** The code of every example. */
export function examplesIn(readme) {
	return Array.from(readme.matchAll(/```js\n([\s\S]*?)```/g), ([, code]) => code);
}

/** A module that runs an example: its imports, then the data, then the rest. */
export function moduleOf(code) {
	return `${code}`.replace(/^((?:import .*\n)+)/, `$1const { ${NAMES.join(', ')} } = globalThis.example();\n`);
}

/** Sets the data of the examples, each time as if it was fetched anew. */
export function provide({ seeds }, wasm) {
	const repository = named(seeds, 'repository', 'valid');
	const event = JSON.parse(new TextDecoder().decode(bytesOf(named(seeds, 'event', ''))));
	const car = bytesOf(repository);
	const { did, key } = repository;
	const didDocument = {
		id: did,
		verificationMethod: [
			{
				id: `${did}#atproto`,
				type: 'Multikey',
				controller: did,
				publicKeyMultibase: key.slice('did:key:'.length),
			},
		],
	};
	const plcLog = new TextDecoder().decode(bytesOf(named(seeds, 'plc-log', '')));
	const firehose = named(seeds, 'frames', 'valid');
	const otherKey = seeds.find((seed) => seed.key !== key).key;
	globalThis.example = () => ({
		...{ car, did, key, otherKey, didDocument, event, plcLog, wasm },
		frames: framesOf(bytesOf(firehose)),
		keys: { [firehose.did]: firehose.key },
		response: new Response(car),
	});
}

const NAMES = ['car', 'did', 'key', 'otherKey', 'didDocument', 'event', 'plcLog', 'wasm', 'frames', 'keys', 'response'];

function named(seeds, kind, start) {
	const isIt = ({ kind: ofKind, name, code }) => ofKind === kind && name.startsWith(start) && code === null;
	const found = seeds.find(isIt) ?? seeds.find(({ kind: ofKind, code }) => ofKind === kind && code === null);
	if (found === undefined) {
		throw new Error(`no ${kind}`);
	}
	return found;
}

function bytesOf({ bytes }) {
	return Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
}

/** The frames in a file of frames. */
function framesOf(file) {
	const view = new DataView(file.buffer);
	const frames = [];
	for (let at = 4; at < file.length; at += 4 + view.getUint32(at)) {
		frames.push(file.subarray(at + 4, at + 4 + view.getUint32(at)));
	}
	return frames;
}
