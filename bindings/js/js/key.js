/** The options of a verification: the key in one of its forms, the account, and the limits. */

const FORMS = ['key', 'didDocument', 'plcLog'];

/** The arguments of the module for `options`. */
export function keyArguments(options, { mayBeUnsigned = false } = {}) {
	const given = FORMS.filter((form) => options?.[form] !== undefined);
	if (given.length === 0 && mayBeUnsigned && options?.unsigned === true) {
		return { kind: 'none', text: '', did: options.did };
	}
	if (given.length !== 1) {
		throw new TypeError('options: exactly one of key, didDocument and plcLog is expected');
	}
	const value = options[given[0]];
	const text = typeof value === 'string' ? value : JSON.stringify(value);
	if (options.did !== undefined && typeof options.did !== 'string') {
		throw new TypeError('did: expected a string');
	}
	return { kind: given[0], text, did: options.did };
}

/** The limits among `options`, as JSON. */
export function limitsOf({ strictRecords, maxExtraBlocks, maxExtraBytes, maxHeldBytes } = {}) {
	return JSON.stringify({ strictRecords, maxExtraBlocks, maxExtraBytes, maxHeldBytes });
}
