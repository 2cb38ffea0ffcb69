// The reference PDS, configured by its own environment variables.
import pds from '@atproto/pds'
import { listenOnLoopback } from './loopback.mjs'

const env = pds.readEnv()
const server = await pds.PDS.create(pds.envToCfg(env), pds.envToSecrets(env))
listenOnLoopback(server.app)
await server.start()
