/** Everything that the package has, without a module: an entry point loads one. */

export { decodeCar, decodeCarStream } from './car.js';
export { cborDecode, cborEncode, CborFloat } from './cbor.js';
export { Cid } from './cid.js';
export { WireproofError } from './error.js';
export { decodeFrame, FrameDecoder } from './frame.js';
export { Judge } from './judge.js';
export * as nostr from './nostr.js';
export { verifyPlcLog } from './plc.js';
export { openRepository, Repository, verifyRepository } from './repository.js';
export { verifySignature } from './signature.js';
export { verifyRange, verifyRecord } from './slice.js';
