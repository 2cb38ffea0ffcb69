#!/bin/sh
# WebCrypto (here that of Node) signs with P-256 in the high-S form half of the time. The AT Protocol allows the low-S form alone, so
# @atproto/crypto refuses about half of such signatures: a signer has to replace s by n - s.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @atproto/crypto@0.5.5
newer_node
cat > sign.mjs <<'JS'
import { webcrypto } from 'node:crypto';
import { P256Keypair, verifySignature } from '@atproto/crypto';
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const { privateKey } = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
const { d } = await webcrypto.subtle.exportKey('jwk', privateKey);
const did = (await P256Keypair.import(Buffer.from(d, 'base64url'))).did();
const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const counts = { refused: 0, highS: 0, lowSRefused: 0 };
for (let number = 0; number < 200; number++) {
  const message = Uint8Array.of(number);
  const signature = Buffer.from(await webcrypto.subtle.sign(algorithm, privateKey, message));
  const s = BigInt(`0x${signature.toString('hex', 32)}`);
  counts.highS += s > order / 2n;
  counts.refused += !(await verifySignature(did, message, signature));
  const low = s > order / 2n ? order - s : s;
  signature.write(low.toString(16).padStart(64, '0'), 32, 'hex');
  counts.lowSRefused += !(await verifySignature(did, message, signature));
}
console.error(counts);
console.log(counts.refused > 20 && counts.refused === counts.highS, counts.lowSRefused);
JS
expect "of 200 signatures those in high-S form are refused; in low-S form, refused" "$(node sign.mjs)" "true 0"
