/** The error of broken rules, and the call that turns a fault of the module into one. */

export class WireproofError extends Error {
	constructor(fault) {
		super(fault.message);
		this.name = 'WireproofError';
		this.code = fault.code;
		this.rule = fault.rule;
		this.offset = fault.offset;
		this.cid = fault.cid;
		this.path = fault.path;
		this.index = fault.index;
	}
}

/** Calls the module. A fault is thrown as JSON text: a wrong argument becomes a TypeError. */
export function call(work) {
	try {
		return work();
	} catch (thrown) {
		throw typeof thrown === 'string' ? errorOf(JSON.parse(thrown)) : thrown;
	}
}

export function errorOf(fault) {
	return fault.code === 'argument' ? new TypeError(fault.message) : new WireproofError(fault);
}

/** Refuses anything but bytes, with the name of the argument. */
export function bytesOf(value, name) {
	if (value instanceof Uint8Array) {
		return value;
	}
	if (value instanceof ArrayBuffer) {
		return new Uint8Array(value);
	}
	throw new TypeError(`${name}: expected a Uint8Array`);
}
