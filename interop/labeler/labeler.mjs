// The labeler of Skyware, with its own DID document, and requests that create labels: node labeler.mjs
import { LabelerServer } from '@skyware/labeler'

const { PORT, DID, SIGNING_KEY, DATABASE } = process.env
let document = JSON.parse(process.env.DOCUMENT)
const server = new LabelerServer({ did: DID, signingKey: SIGNING_KEY, dbPath: DATABASE })
server.app.get('/.well-known/did.json', () => document)
// The body is a list of labels: `uri`, `val`, and more. A label that is signed is stored as it is.
server.app.post('/labels', async (request) => {
  for (const label of request.body) {
    if (label.sig) await server.saveLabel({ ...label, sig: new Uint8Array(Buffer.from(label.sig, 'base64')) })
    else await server.createLabel(label)
  }
  return {}
})
server.start({ port: Number(PORT), host: '127.0.0.1' }, (error) => {
  if (error) throw error
})
