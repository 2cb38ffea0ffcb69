/** The comparison in a worker of a browser, which knows no import map. */

import * as wireproof from '/node_modules/wireproof/js/index.js';

import { compare } from './verdicts.mjs';

const { seeds, cases } = await (await fetch('/cases.json')).json();
const { cases: count, differences } = await compare(wireproof, { seeds, cases: cases.slice(-1000) });
postMessage({ count, differences: differences.slice(0, 3) });
