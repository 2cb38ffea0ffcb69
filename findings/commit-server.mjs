// What the scripts about clients of streams share: a server on this machine that sends one `#commit` with a record of each of three collections.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { CarBufferWriter } from '@ipld/car';
import { encode } from '@ipld/dag-cbor';
import { CID } from 'multiformats/cid';
import { create } from 'multiformats/hashes/digest';
import { WebSocketServer } from 'ws';

const record = encode({ $type: 'app.bsky.feedgen.x' });
const cid = CID.createV1(0x71, create(0x12, createHash('sha256').update(record).digest()));
const writer = CarBufferWriter.createWriter(new ArrayBuffer(1000), { roots: [cid] });
writer.write({ cid, bytes: record });
const ops = ['app.bsky.feed.post', 'app.bsky.feedgen.x', 'app.bsky.graph.follow'].map((collection) =>
  ({ action: 'create', path: `${collection}/3mbjrqbb2c22a`, cid }));
const commit = { seq: 7, repo: 'did:web:ada.example', commit: cid, rev: '3mbjrqbb2c22a', since: null, blocks: writer.close({ resize: true }),
  ops, blobs: [], prevData: cid, rebase: false, tooBig: false, time: '2026-01-01T00:00:00Z' };

const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
server.on('connection', (socket) => socket.send(Buffer.concat([encode({ op: 1, t: '#commit' }), encode(commit)])));
await once(server, 'listening');

export const service = `ws://127.0.0.1:${server.address().port}`;
