#!/bin/sh
# @skyware/jetstream leaves out a cursor of 0, with which a Jetstream sends all events that it has: the client gets new events alone.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @skyware/jetstream@0.2.5 ws@8.23.0
newer_node
cat > connect.mjs <<'JS'
import { once } from 'node:events';
import { Jetstream } from '@skyware/jetstream';
import WebSocket, { WebSocketServer } from 'ws';
const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
server.on('connection', (socket, request) => {
  console.log(new URL(request.url, 'http://localhost').searchParams.get('cursor'));
  process.exit(0);
});
await once(server, 'listening');
const endpoint = `ws://127.0.0.1:${server.address().port}/subscribe`;
new Jetstream({ endpoint, ws: WebSocket, cursor: Number(process.argv[2]) }).start();
setTimeout(() => { console.log('nothing after a minute'); process.exit(1); }, 60_000);
JS
expect "@skyware/jetstream 0.2.5, cursor 1" "$(node connect.mjs 1)" 1
expect "@skyware/jetstream 0.2.5, cursor 0" "$(node connect.mjs 0)" null
