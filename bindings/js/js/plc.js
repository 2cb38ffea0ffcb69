/** Logs of did:plc. */

import { call } from './error.js';
import { verify_plc_log } from './wasm/wireproof.js';

export function verifyPlcLog(log, { did } = {}) {
	const json = typeof log === 'string' ? log : JSON.stringify(log);
	return JSON.parse(call(() => verify_plc_log(json, did)));
}
