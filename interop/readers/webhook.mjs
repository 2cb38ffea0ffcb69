// A receiver of webhooks that takes what the library of Standard Webhooks verifies, and refuses the rest:
// node webhook.mjs PORT SECRET
import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { writeEvent, writeError } from './output.mjs'

const [port, secret] = process.argv.slice(2)
const webhook = new Webhook(secret)

async function receive(request) {
  const parts = []
  for await (const part of request) parts.push(part)
  return webhook.verify(Buffer.concat(parts).toString('utf8'), request.headers)
}

const server = createServer(async (request, response) => {
  try {
    const events = await receive(request)
    events.forEach((event) => writeEvent(event))
    response.writeHead(204).end()
  } catch (error) {
    writeError(error)
    response.writeHead(401).end()
  }
})
server.listen(Number(port), '127.0.0.1', () => writeEvent({ kind: 'listening' }))
