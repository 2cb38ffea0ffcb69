// What the scripts about clients of streams share: a server on this machine, and a `#commit` with a record of each of three collections.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { CarBufferWriter } from '@ipld/car';
import { encode } from '@ipld/dag-cbor';
import { CID } from 'multiformats/cid';
import { create } from 'multiformats/hashes/digest';
import { WebSocketServer } from 'ws';

// Sends these payloads, each with its type, to every client. Returns the address.
export async function serve(...messages) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  const frames = messages.map(([t, payload]) => Buffer.concat([encode({ op: 1, t }), encode(payload)]));
  server.on('connection', (socket) => frames.forEach((frame) => socket.send(frame)));
  await once(server, 'listening');
  return `ws://127.0.0.1:${server.address().port}`;
}

// A client that does not get what it waits for ends.
setTimeout(() => { console.log('nothing after two minutes'); process.exit(1); }, 120_000);

const record = encode({ $type: 'app.bsky.feedgen.x' });
const cid = CID.createV1(0x71, create(0x12, createHash('sha256').update(record).digest()));
const writer = CarBufferWriter.createWriter(new ArrayBuffer(1000), { roots: [cid] });
writer.write({ cid, bytes: record });
const ops = ['app.bsky.feed.post', 'app.bsky.feedgen.x', 'app.bsky.graph.follow'].map((collection) =>
  ({ action: 'create', path: `${collection}/3mbjrqbb2c22a`, cid }));
export const commit = { seq: 7, repo: 'did:web:ada.example', commit: cid, rev: '3mbjrqbb2c22a', since: null,
  blocks: writer.close({ resize: true }), ops, blobs: [], prevData: cid, rebase: false, tooBig: false, time: '2026-01-01T00:00:00Z' };
