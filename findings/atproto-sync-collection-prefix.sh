#!/bin/sh
# @atproto/sync takes a selection of collections `app.bsky.feed.*` as the prefix `app.bsky.feed`: records of `app.bsky.feedgen.x` are
# delivered too. An event with both is sent by a server on this machine.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @atproto/sync@0.4.11 @ipld/dag-cbor@10.0.2 @ipld/car@5.4.7 multiformats@14.0.5 ws@8.23.0
newer_node
cp "$findings/stream-server.mjs" .
cat > follow.mjs <<'JS'
import { Firehose } from '@atproto/sync';
import { commit, serve } from './stream-server.mjs';
const service = await serve(['#commit', commit]);
const seen = [];
const handleEvent = (event) => {
  seen.push(event.collection);
  setTimeout(() => { console.log(seen.join(' ')); process.exit(0); }, 500);
};
const onError = (error) => { console.log(error); process.exit(1); };
new Firehose({ service, filterCollections: ['app.bsky.feed.*'], unauthenticatedCommits: true, handleEvent, onError }).start();
JS
expect "@atproto/sync 0.4.11, app.bsky.feed.*" "$(node follow.mjs)" "app.bsky.feed.post app.bsky.feedgen.x"
