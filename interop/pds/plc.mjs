// The reference PLC directory, with its database in memory.
import plc from '@did-plc/server'
import { listenOnLoopback } from './loopback.mjs'

const server = plc.PlcServer.create({ db: plc.Database.mock(), port: Number(process.env.PORT) })
listenOnLoopback(server.app)
await server.start()
