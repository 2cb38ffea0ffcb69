// The labeler of Skyware, and a server with its DID document that has it create labels: node labeler.mjs
import { createServer } from 'node:http'
import { LabelerServer } from '@skyware/labeler'

const { PORT, SERVICE_PORT, DID, SIGNING_KEY, DATABASE, DOCUMENT } = process.env
const server = new LabelerServer({ did: DID, signingKey: SIGNING_KEY, dbPath: DATABASE })
await server.dbInitLock
server.start({ port: Number(SERVICE_PORT), host: '127.0.0.1' }, (error) => {
  if (error) throw error
  createServer(answer).listen(Number(PORT), '127.0.0.1')
})

async function answer(request, response) {
  if (request.method === 'POST') await create(JSON.parse(await text(request)))
  response.setHeader('content-type', 'application/json')
  response.end(request.method === 'POST' ? '{}' : DOCUMENT)
}

// A label that is signed is stored as it is.
async function create(labels) {
  for (const { sig, ...label } of labels) {
    if (sig) await server.saveLabel({ ...label, sig: new Uint8Array(Buffer.from(sig, 'base64')) })
    else await server.createLabel(label)
  }
}

async function text(request) {
  let body = ''
  for await (const part of request) body += part
  return body
}
