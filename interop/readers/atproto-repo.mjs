// Fetches whole repositories and the proofs of records, and verifies both: node atproto-repo.mjs SERVICE PLC DID...
import { AtpBaseClient } from '@atproto/api'
import { IdResolver } from '@atproto/identity'
import { verifyProofs, verifyRepoCar } from '@atproto/repo'
import { writeEvent } from './output.mjs'

const [service, plcUrl, ...dids] = process.argv.slice(2)
const { sync } = new AtpBaseClient(service).com.atproto
// Its default fetch function rejects servers of this machine.
const resolver = new IdResolver({ plcUrl, fetch: globalThis.fetch })

for (const did of dids) {
  const key = await resolver.did.resolveAtprotoKey(did)
  const { data: car } = await sync.getRepo({ did })
  const { creates, commit } = await verifyRepoCar(car, did, key)
  writeEvent({ kind: 'commit', did, cid: commit.cid.toString(), rev: commit.rev })
  for (const { collection, rkey, cid } of creates) {
    writeEvent({ kind: 'record', did, path: `${collection}/${rkey}`, cid: cid.toString() })
  }
  const { collection, rkey, cid } = creates[0]
  const { data: proof } = await sync.getRecord({ did, collection, rkey })
  const { verified } = await verifyProofs(proof, [{ collection, rkey, cid }], did, key)
  writeEvent({ kind: 'proof', did, verified: verified.length })
}
