#!/bin/sh
# @skyware/labeler signs a label with `neg: false`, and Ozone signs one without `neg`. It stores a label that is signed already as it is, and
# serves it with `neg: false`: the signature is one of the label without it, so readers that take the label as it comes refuse it.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @skyware/labeler@0.2.0 @atproto/crypto@0.5.5 @ipld/dag-cbor@10.0.2
newer_node
cat > label.mjs <<'JS'
import { once } from 'node:events';
import { Secp256k1Keypair, verifySignature } from '@atproto/crypto';
import { encode } from '@ipld/dag-cbor';
import { LabelerServer } from '@skyware/labeler';

const pair = await Secp256k1Keypair.create({ exportable: true });
const signingKey = Buffer.from(await pair.export()).toString('hex');
const did = 'did:web:labeler.test';
const server = new LabelerServer({ did, signingKey, dbPath: `${process.argv[2]}.db` });
const label = { ver: 1, src: did, uri: 'did:web:alice.test', val: 'spam', cts: '2026-11-30T00:00:00.000Z' };
const sig = await pair.sign(encode(label));
await server.saveLabel(process.argv[2] === 'signed' ? { ...label, sig } : label);
const [served] = await new Promise((resolve, reject) => {
  server.start({ port: 0, host: '127.0.0.1' }, async (error, address) => {
    if (error) return reject(error);
    const answer = await fetch(`${address}/xrpc/com.atproto.label.queryLabels?uriPatterns=*`);
    resolve((await answer.json()).labels);
  });
});
const signature = Buffer.from(served.sig.$bytes, 'base64');
const { id, sig: _, ...fields } = served;
const { neg, ...without } = fields;
const isOf = async (value) => verifySignature(pair.did(), encode(value), signature);
console.log(`neg ${neg}, as served ${await isOf(fields)}, without neg ${await isOf(without)}`);
process.exit(0);
JS
expect "@skyware/labeler 0.2.0, its own label" "$(node label.mjs own)" "neg false, as served true, without neg false"
expect "@skyware/labeler 0.2.0, a signed label" "$(node label.mjs signed)" "neg false, as served false, without neg true"
