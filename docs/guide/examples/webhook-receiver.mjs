// Receives the requests of `wireproof follow --to http://…`, checks their signatures, and prints their events:
// node webhook-receiver.mjs PORT SECRET_FILE [COUNT]
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const [port, secretFile, count = Infinity] = process.argv.slice(2)
const text = readFileSync(secretFile, 'utf8').trim()
const secret = text.startsWith('whsec_') ? Buffer.from(text.slice(6), 'base64') : Buffer.from(text)
// An event can arrive twice, with the same id. A database would have a unique index instead.
const known = new Set()

// Why a request is refused, if it is.
function fault(headers, body) {
  const id = headers['webhook-id']
  const timestamp = headers['webhook-timestamp']
  const signed = createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest()
  const given = Buffer.from((headers['webhook-signature'] ?? '').replace(/^v1,/, ''), 'base64')
  if (given.length !== signed.length || !timingSafeEqual(given, signed)) return 'wrong signature'
  // An old request may be a copy that somebody sends again.
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) < 300)) return 'too old'
}

const server = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const refused = fault(request.headers, body)
  if (refused) return response.writeHead(401).end(refused)
  for (const { id, did, kind, verdict } of JSON.parse(body)) {
    if (known.has(id)) continue
    console.log(kind, verdict, did)
    known.add(id)
  }
  // Store what you need first: an event is not sent again after a status of 2xx.
  response.writeHead(204).end()
  if (known.size >= count) server.close()
})
server.listen(port, '127.0.0.1')
