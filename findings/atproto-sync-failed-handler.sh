#!/bin/sh
# With a runner, @atproto/sync stores the cursor of an event whose handler threw: after a restart the event does not come again. The error is
# given to `onError` alone.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @atproto/sync@0.4.11 @ipld/dag-cbor@10.0.2 @ipld/car@5.4.7 multiformats@14.0.5 ws@8.23.0
newer_node
cp "$findings/stream-server.mjs" .
cat > follow.mjs <<'JS'
import { Firehose, MemoryRunner } from '@atproto/sync';
import { commit, serve } from './stream-server.mjs';
const service = await serve(['#commit', commit]);
let errors = 0;
const setCursor = (cursor) => { console.log(`${errors} errors, stored cursor ${cursor}`); process.exit(0); };
const handleEvent = () => { throw new Error('the database is away'); };
const onError = () => { errors += 1; };
const runner = new MemoryRunner({ startCursor: 6, setCursor });
new Firehose({ service, runner, unauthenticatedCommits: true, handleEvent, onError }).start();
JS
expect "@atproto/sync 0.4.11, an event of sequence number 7" "$(node follow.mjs)" "3 errors, stored cursor 7"
