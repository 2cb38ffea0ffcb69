#!/bin/sh
# @atproto/sync takes a selection of collections `app.bsky.feed.*` as the prefix `app.bsky.feed`: records of `app.bsky.feedgen.x` are
# delivered too. An event with both is sent by a server on this machine.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @atproto/sync@0.4.11 @ipld/dag-cbor@10.0.2 @ipld/car@5.4.7 multiformats@14.0.0 ws@8.18.3
newer_node
cat > follow.mjs <<'JS'
import { createHash } from 'node:crypto';
import { Firehose } from '@atproto/sync';
import { CarBufferWriter } from '@ipld/car';
import { encode } from '@ipld/dag-cbor';
import { CID } from 'multiformats/cid';
import { create } from 'multiformats/hashes/digest';
import { WebSocketServer } from 'ws';

const record = encode({ $type: 'app.bsky.feedgen.x' });
const cid = CID.createV1(0x71, create(0x12, createHash('sha256').update(record).digest()));
const buffer = new ArrayBuffer(1000);
const writer = CarBufferWriter.createWriter(buffer, { roots: [cid] });
writer.write({ cid, bytes: record });
const ops = ['app.bsky.feed.post', 'app.bsky.feedgen.x', 'app.bsky.graph.follow'].map((collection) =>
  ({ action: 'create', path: `${collection}/3mbjrqbb2c22a`, cid }));
const commit = { seq: 1, repo: 'did:web:ada.example', commit: cid, rev: '3mbjrqbb2c22a', since: null, blocks: writer.close({ resize: true }),
  ops, blobs: [], prevData: cid, rebase: false, tooBig: false, time: '2026-01-01T00:00:00Z' };
const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
server.on('connection', (socket) => socket.send(Buffer.concat([encode({ op: 1, t: '#commit' }), encode(commit)])));
await new Promise((resolve) => server.on('listening', resolve));
const seen = [];
const firehose = new Firehose({ service: `ws://127.0.0.1:${server.address().port}`, filterCollections: ['app.bsky.feed.*'],
  unauthenticatedCommits: true, onError: (error) => { console.log(error); process.exit(1); },
  handleEvent: (event) => {
    seen.push(event.collection);
    setTimeout(() => { console.log(seen.join(' ')); process.exit(0); }, 500);
  } });
firehose.start();
JS
expect "@atproto/sync 0.4.11, app.bsky.feed.*" "$(node follow.mjs)" "app.bsky.feed.post app.bsky.feedgen.x"
