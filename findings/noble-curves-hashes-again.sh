#!/bin/sh
# @noble/curves 2 hashes what it signs and verifies unless `prehash: false` is given; version 1 did not. After an upgrade,
# `sign(hash, key)` signs the hash of the hash, which no other implementation verifies.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages old@npm:@noble/curves@1.9.7 new@npm:@noble/curves@2.4.0
cat > sign.mjs <<'JS'
import { createHash } from 'node:crypto';
import { secp256k1 as before } from 'old/secp256k1';
import { secp256k1 as now } from 'new/secp256k1.js';
const sha256 = (bytes) => createHash('sha256').update(bytes).digest();
const [key, hash] = [new Uint8Array(32).fill(7), sha256('message')];
const signature = now.sign(hash, key);
const same = (other) => Buffer.from(signature).equals(Buffer.from(other));
console.log(same(before.sign(hash, key).toCompactRawBytes()), same(now.sign(hash, key, { prehash: false })),
  same(now.sign(sha256(hash), key, { prehash: false })));
JS
expect "2.4.0 signs as 1.9.7, as with prehash: false, as the hash of the hash" "$(node sign.mjs)" "false false true"
