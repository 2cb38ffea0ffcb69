#!/bin/sh
# @atproto/sync drops `#account` events of the statuses `throttled` and `desynchronized`, and of those that are yet to be defined, whatever
# their `active` says: a program does not learn that such an account is active again.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @atproto/sync@0.4.11 @ipld/dag-cbor@10.0.2 @ipld/car@5.4.7 multiformats@14.0.5 ws@8.23.0
newer_node
cp "$findings/stream-server.mjs" .
cat > follow.mjs <<'JS'
import { Firehose } from '@atproto/sync';
import { serve } from './stream-server.mjs';
const account = (seq, active, status) => ['#account', { seq, did: 'did:web:ada.example', time: '2026-01-01T00:00:00Z', active, status }];
const service = await serve(account(1, false, 'suspended'), account(2, true, 'desynchronized'), account(3, false, 'throttled'),
  account(4, false, 'deleted'));
const seen = [];
const handleEvent = (event) => {
  seen.push(`${event.seq} ${event.status}`);
  if (event.seq === 4) { console.log(seen.join(', ')); process.exit(0); }
};
const onError = (error) => { console.log(error); process.exit(1); };
new Firehose({ service, handleEvent, onError }).start();
JS
expect "@atproto/sync 0.4.11, 1 suspended, 2 desynchronized, 3 throttled, 4 deleted" "$(node follow.mjs)" "1 suspended, 4 deleted"
