/**
 * Verification of AT Protocol data and Nostr events, by the library of Wireproof as WebAssembly.
 *
 * Importing `wireproof` loads the module. Import `wireproof/manual` to load it yourself. Nothing here opens a connection, and
 * nothing is kept between calls but what an object that you made holds. Every function works in workers.
 */

/** A broken rule, and its place in the input. Wrong arguments are a `TypeError` instead. */
export class WireproofError extends Error {
	/** The stable code of the rule, such as `tree/layer`: `docs/formats/codes.md` says what to do about each. */
	readonly code: string;
	/** The broken rule as a sentence. */
	readonly rule: string;
	/** Bytes from the start of the input to the part that broke the rule, where one part did. */
	readonly offset?: number;
	/** The CID of the block, where the rule is about one. */
	readonly cid?: string;
	/** The path of the record, or the key in the tree. */
	readonly path?: string;
	/** The index of the entry of a did:plc log, from 0. */
	readonly index?: number;
}

/** The signing key of an account: exactly one of `key`, `didDocument` and `plcLog`. */
export interface KeyOptions {
	/** The key as `did:key`. */
	key?: string;
	/** The DID document, as JSON text or parsed. */
	didDocument?: string | object;
	/** The did:plc log, as JSON text or parsed. It is verified first. */
	plcLog?: string | object[];
	/** The expected account. Default: the account of the document or the log; with `key`, any. */
	did?: string;
}

export interface VerifyOptions extends KeyOptions {
	/** Refuses a record that is signed and not valid, instead of counting it. Default: false. */
	strictRecords?: boolean;
}

export interface Progress {
	/** Bytes of the archive that were read. */
	bytes: number;
	/** Records of the tree that were reached. */
	records: number;
	/** Nodes of the tree that were reached. */
	nodes: number;
}

export interface RepositoryOptions extends VerifyOptions {
	/** Instead of a key: skips the signature, so that the author is not proved. The result has `signed: false`. */
	unsigned?: boolean;
	/** Maximum number of blocks that the commit does not lead to. Default: no limit. */
	maxExtraBlocks?: number;
	/** Maximum bytes in such blocks. Default: no limit. */
	maxExtraBytes?: number;
	/**
	 * Maximum bytes of blocks of a stream that are held because they come before a link to them. Default: 16 MiB. Servers
	 * send archives in an order in which none is.
	 */
	maxHeldBytes?: number;
	/** Ends the verification; the promise is rejected with the reason of the signal. */
	signal?: AbortSignal;
	/** Called while a stream is read, after every chunk, and once for bytes in memory. */
	onProgress?: (progress: Progress) => void;
}

/** The facts that were proved of a repository. */
export interface RepositorySummary {
	/** The account. */
	readonly did: string;
	/** The revision. */
	readonly rev: string;
	/** The CID of the signed commit. */
	readonly root: string;
	/** The CID of the root of the tree. */
	readonly data: string;
	/** Whether the signature is part of the proof. */
	readonly signed: boolean;
	/** Number of records. */
	readonly records: number;
	/** Number of nodes of the tree. */
	readonly nodes: number;
	/** The layer of the root of the tree; null without records. */
	readonly height: number | null;
	/** Number of blocks in the archive. */
	readonly blocks: number;
	/** Length of the archive in bytes. */
	readonly bytes: number;
	/** Blocks that the commit does not lead to, repeated ones counted once. */
	readonly extraBlocks: number;
	/** Bytes in such blocks. */
	readonly extraBytes: number;
	/** Number of records that are signed and not valid. */
	readonly invalidRecords: number;
	/** The first of them. */
	readonly firstInvalid: InvalidRecord | null;
}

/** A record that is signed and not valid. */
export interface InvalidRecord {
	readonly path: string;
	readonly cid: string;
	readonly code: string;
	readonly rule: string;
	/** Bytes from the start of the record to the part that breaks the rule. */
	readonly offset: number;
}

/**
 * Verifies a whole repository, as `com.atproto.sync.getRepo` returns it: every hash, the signature, the tree and every record.
 *
 * A stream is verified as it arrives, in memory that is bounded by the number of blocks and not by their size: 37 bytes a
 * record. The verdict is the same. A stream that fails rejects the promise with its own error.
 *
 * @param source the CAR archive: bytes, or a stream of them, such as the body of a response
 * @throws WireproofError at the first broken rule
 */
export function verifyRepository(
	source: Uint8Array | ArrayBuffer | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>,
	options: RepositoryOptions,
): Promise<RepositorySummary>;

/**
 * Verifies a whole repository in memory, and keeps it for reading. Call `free` when you no longer need it.
 *
 * @throws WireproofError at the first broken rule
 */
export function openRepository(bytes: Uint8Array | ArrayBuffer, options: RepositoryOptions): Repository;

/** A verified repository in memory. Made by {@link openRepository}. */
export class Repository implements Disposable {
	private constructor();
	/** The facts that were proved. */
	readonly summary: RepositorySummary;
	/** The number of records of every collection, in the order of the names. */
	collections(): Record<string, number>;
	/** The records in the order of their paths: of one collection, or all. */
	records(collection?: string): IterableIterator<RepositoryRecord>;
	/** The record at a path such as `app.bsky.feed.post/3jzfcijpj2z2a`; undefined if there is none. */
	get(path: string): RepositoryRecord | undefined;
	/** The block of a CID; undefined if the archive has none. */
	block(cid: string | Cid): { readonly bytes: Uint8Array; readonly offset: number } | undefined;
	/** A node of the tree; undefined if the CID is not of a node. */
	node(cid: string | Cid): TreeNode | undefined;
	/** The CIDs of the nodes from the root of the tree to the node of a path, or to the node that would have it. */
	proofPath(path: string): string[];
	/** Releases the memory. */
	free(): void;
	[Symbol.dispose](): void;
}

export interface RepositoryRecord {
	readonly path: string;
	readonly cid: string;
	/** Where its bytes start in the archive. */
	readonly offset: number;
	/** Its bytes: {@link cborDecode} makes a value of them. */
	readonly bytes: Uint8Array;
}

/** A node of the tree. Its keys are whole, whatever prefix the block shares. */
export interface TreeNode {
	readonly cid: string;
	/** The child before the first entry. */
	readonly left: string | null;
	readonly entries: ReadonlyArray<{
		/** The path of the record. */
		readonly key: string;
		/** The CID of the record. */
		readonly value: string;
		/** The child after this entry. */
		readonly right: string | null;
	}>;
}

/** A record in a slice. */
export interface ProvedRecord extends RepositoryRecord {
	/** The rule that the record breaks, if it is signed and not valid; otherwise null. */
	readonly invalid: { readonly code: string; readonly rule: string; readonly offset: number } | null;
}

/** A record at a path, or its absence, as the account signed it. */
export interface RecordProof {
	readonly did: string;
	readonly rev: string;
	/** The CID of the signed commit. */
	readonly root: string;
	readonly path: string;
	/** Number of nodes in the proof. */
	readonly nodes: number;
	/** Blocks that the proof does not need. */
	readonly extraBlocks: number;
	/** The record; null if the repository is proved to have none at the path. */
	readonly record: ProvedRecord | null;
}

/**
 * Verifies a record, or that there is none, from a slice as `com.atproto.sync.getRecord` returns it.
 *
 * @param path collection and record key with a slash between, or the `at://` URI, whose account is then expected
 * @throws WireproofError at the first broken rule
 */
export function verifyRecord(bytes: Uint8Array | ArrayBuffer, path: string, options: VerifyOptions): RecordProof;

/** All records of some collections, as the account signed them. */
export interface RangeProof {
	readonly did: string;
	readonly rev: string;
	/** The CID of the signed commit. */
	readonly root: string;
	/** Number of nodes in the proof. */
	readonly nodes: number;
	/** Blocks that the proof does not need. */
	readonly extraBlocks: number;
	/** The records in the order of their paths. The collections have no others. */
	readonly records: ProvedRecord[];
}

/**
 * Verifies all records of some collections from a slice of the repository that has the nodes on the way to them.
 *
 * @param collections names such as `app.bsky.feed.post`, or the start of names such as `app.bsky.graph.*`
 * @throws WireproofError at the first broken rule, such as a part of the proof that is missing
 */
export function verifyRange(
	bytes: Uint8Array | ArrayBuffer,
	collections: string[],
	options: VerifyOptions,
): RangeProof;

/** The account of a did:plc log. */
export interface PlcHistory {
	readonly did: string;
	readonly handle: string | null;
	/** The account's server, such as `https://pds.example.com`. */
	readonly host: string | null;
	/** The key that signs the repository, as `did:key`. */
	readonly signingKey: string | null;
	readonly rotationKeys: string[];
	readonly alsoKnownAs: string[];
	/** Whether the last operation is a tombstone. */
	readonly tombstoned: boolean;
	/** The operations in the order of the log, nullified ones included. */
	readonly operations: ReadonlyArray<{
		readonly cid: string;
		readonly prev: string | null;
		/** The index of the signing key among the rotation keys of the operation before. */
		readonly signer: number;
		/** When the directory accepted it, in milliseconds since 1970; null in a plain log. */
		readonly createdAt: number | null;
		readonly nullified: boolean;
	}>;
}

/**
 * Verifies a did:plc log: the audit log with its statements, or the operations alone.
 *
 * @throws WireproofError at the first broken rule, with the index of its entry
 */
export function verifyPlcLog(log: string | object[], options?: { did?: string }): PlcHistory;

/** The verdict on a signature. */
export interface SignatureVerdict {
	readonly verified: boolean;
	/** `verified`, or the stable code of the broken rule. */
	readonly code: string;
	/** The broken rule as a sentence. */
	readonly rule?: string;
}

/**
 * Verifies an ECDSA signature over the SHA-256 of a message by the strict rules of the AT Protocol: 64 bytes, both numbers in
 * range, low S.
 *
 * @param key the key as `did:key`, of K-256 or P-256
 */
export function verifySignature(
	message: Uint8Array | ArrayBuffer,
	signature: Uint8Array | ArrayBuffer,
	key: string,
): SignatureVerdict;

/** A content identifier, well formed. */
export class Cid {
	/** @param bytes the bytes of a CID, which are not checked here */
	constructor(bytes: Uint8Array);
	readonly bytes: Uint8Array;
	/** The codec, such as 0x71 for DAG-CBOR; undefined for version 0. */
	readonly codec: number | undefined;
	equals(other: unknown): boolean;
	toString(): string;
	toJSON(): { $link: string };
}

/** A float without a fraction, which as a number would be encoded as an integer. */
export class CborFloat {
	constructor(value: number);
	readonly value: number;
	valueOf(): number;
	toJSON(): number;
}

/** A value of DAG-CBOR. Integers beyond 2^53 - 1 are bigints. */
export type CborValue =
	| null
	| boolean
	| number
	| bigint
	| string
	| Uint8Array
	| Cid
	| CborFloat
	| CborValue[]
	| { [key: string]: CborValue };

/**
 * Decodes one item of canonical DAG-CBOR. Byte strings are views of the input.
 *
 * @throws WireproofError with the code `dag-cbor` if the bytes are not exactly one canonical item
 */
export function cborDecode(bytes: Uint8Array | ArrayBuffer): CborValue;

/**
 * Encodes a value as canonical DAG-CBOR: `cborDecode` of it gives the value again. Properties that are undefined are left out.
 *
 * @throws WireproofError with the code `dag-cbor` if the value has no such form
 */
export function cborEncode(value: unknown): Uint8Array;

/** A block of an archive or a frame, whose hash is the one in its CID. */
export interface Block {
	readonly cid: Cid;
	/** A view of the input. */
	readonly bytes: Uint8Array;
	/** Where `bytes` starts in the input. */
	readonly offset: number;
	/** Whether the data is proved to match the CID: false under a hash function other than SHA-256. */
	readonly proved: boolean;
	/** Whether the data is canonical DAG-CBOR. */
	readonly canonical: boolean;
	/** The value, which is made at the first access; undefined if the data is not canonical DAG-CBOR. */
	readonly value: CborValue | undefined;
}

/** A CAR archive. */
export interface Car {
	readonly roots: Cid[];
	/** The blocks in the order of the archive. */
	readonly blocks: Block[];
}

/**
 * Decodes a CAR archive in memory, and checks the hash of every block.
 *
 * @throws WireproofError at the first part that breaks a rule
 */
export function decodeCar(bytes: Uint8Array | ArrayBuffer): Car;

/** A CAR archive whose blocks arrive. */
export interface CarStream {
	readonly roots: Cid[];
	/** The blocks in the order of the archive, to be read once. Ending the iteration early ends the source. */
	readonly blocks: AsyncGenerator<Block, void, undefined>;
}

/**
 * Decodes a CAR archive as it arrives, in bounded memory: the promise is resolved once the header is there. The hash of every
 * block is checked before you get it.
 *
 * @throws WireproofError, from the promise or from the iteration, at the first part that breaks a rule
 */
export function decodeCarStream(
	source: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>,
	options?: { signal?: AbortSignal },
): Promise<CarStream>;

/** An operation of a commit frame on a record. */
export interface FrameOp {
	readonly action: string;
	readonly path: string;
	readonly cid: Cid | null;
	readonly prev?: Cid | null;
}

interface FrameOf<Kind extends string> {
	readonly kind: Kind;
	/** The type in the header, such as `#commit`; undefined for an error. */
	readonly type: string | undefined;
	/** The blocks that the frame carries; empty except for `commit` and `sync`. */
	readonly blocks: Block[];
}

export interface CommitFrame extends FrameOf<'commit'> {
	readonly seq: number;
	readonly repo: string;
	readonly commit: Cid;
	readonly rev: string;
	readonly since: string | null;
	readonly ops: FrameOp[];
	readonly prevData?: Cid;
	readonly time: string;
}

export interface SyncFrame extends FrameOf<'sync'> {
	readonly seq: number;
	readonly did: string;
	readonly rev: string;
	readonly time: string;
}

export interface IdentityFrame extends FrameOf<'identity'> {
	readonly seq: number;
	readonly did: string;
	readonly time: string;
	readonly handle?: string;
}

export interface AccountFrame extends FrameOf<'account'> {
	readonly seq: number;
	readonly did: string;
	readonly time: string;
	readonly active: boolean;
	readonly status?: string;
}

export interface InfoFrame extends FrameOf<'info'> {
	readonly name: string;
	readonly message?: string;
}

export interface ErrorFrame extends FrameOf<'error'> {
	readonly error: string;
	readonly message?: string;
}

export interface UnknownFrame extends FrameOf<'unknown'> {
	/** The payload as it came. */
	readonly payload: CborValue;
}

export type Frame =
	| CommitFrame
	| SyncFrame
	| IdentityFrame
	| AccountFrame
	| InfoFrame
	| ErrorFrame
	| UnknownFrame;

/**
 * Decodes a frame of `com.atproto.sync.subscribeRepos`, and checks the hash of every block. Who signed it is not checked:
 * {@link Judge} does that.
 *
 * @throws WireproofError at the first part that breaks a rule
 */
export function decodeFrame(bytes: Uint8Array | ArrayBuffer): Frame;

/** Decodes frames as {@link decodeFrame} does, and keeps its memory from one to the next. */
export class FrameDecoder implements Disposable {
	constructor();
	decode(bytes: Uint8Array | ArrayBuffer): Frame;
	/** Releases the memory. */
	free(): void;
	[Symbol.dispose](): void;
}

export interface JudgeOptions {
	/** The signing keys of accounts by DID, as `did:key`. */
	keys?: Map<string, string> | Record<string, string>;
	/** The state of another judge. */
	state?: JudgeState;
	/** Seconds that a revision may be ahead of `now`. Default: 300. */
	futureWindow?: number;
	/** Maximum size of a frame in bytes. Default: 5,000,000. */
	maxFrameBytes?: number;
	/** Maximum size of the blocks of a `#commit` in bytes. Default: 2,000,000. */
	maxBlocksBytes?: number;
	/** Maximum size of the blocks of a `#sync` in bytes. Default: 2,000,000. */
	maxSyncBlocksBytes?: number;
	/** Maximum number of operations of a commit. Default: 200. */
	maxOps?: number;
	/** Maximum size of a record in bytes. Default: 1,000,000. */
	maxRecordBytes?: number;
	/** Refuses an event with a record that is not canonical DAG-CBOR, or not a map. Default: false, as for all that follow. */
	strictRecords?: boolean;
	/** Accepts a commit without `prevData`, from before sync 1.1, with the chain `unproved`. */
	acceptMissingPrevData?: boolean;
	/** Accepts updates and deletes that do not say what they replaced, with the chain `unproved`. */
	acceptOpsWithoutPrev?: boolean;
	/** Accepts a commit whose operations do not lead back to `prevData`, with the chain `unproved`. */
	acceptFailedInversion?: boolean;
	/** Accepts the operations of a signed commit without the tree: whoever sends it may have changed some. */
	acceptUnprovedOperations?: boolean;
	/** Accepts a commit whose `since` is not the known revision, if `prevData` is the known tree. */
	acceptSinceMismatch?: boolean;
	/** Accepts a delete whose path the blocks do not show. */
	acceptUnprovedDeletes?: boolean;
	/** Accepts a commit that says `tooBig`, whose missing operations stay unknown. */
	acceptTooBig?: boolean;
	/** Accepts a commit that says `rebase`. */
	acceptRebase?: boolean;
	/** Accepts an event whose `time` is not a datetime. */
	acceptAnyTime?: boolean;
}

/** The verdict about a frame, and what the frame says. */
export interface Outcome {
	/** The stable name of the verdict: `verified`, `verified/broken`, `signature/wrong`, … */
	readonly code: string;
	readonly verdict: 'verified' | 'ignored' | 'refused' | 'unchecked';
	/** Whether the frame is proved to be its account's. */
	readonly verified: boolean;
	readonly kind: Frame['kind'] | 'undecodable';
	/** How a verified frame continues the known state of its account. */
	readonly chain: 'intact' | 'first-seen' | 'broken' | 'still-desynchronized' | 'unproved' | null;
	/** The code of the gap before a verified commit: fetch the repository. */
	readonly gap: 'event/since' | 'event/prev-data' | null;
	/** The broken rule, or the gap, as a sentence. */
	readonly rule: string | null;
	/** Bytes from the start of the frame to the part that broke the rule, where one part did. */
	readonly offset: number | null;
	readonly seq: number | null;
	/** The account. Proved only if `verified`, as `rev` is. */
	readonly did: string | null;
	readonly rev: string | null;
	/** The time that the frame states. Never proved. */
	readonly time: string | null;
	/** The operations of a verified commit; otherwise empty. */
	readonly ops: ReadonlyArray<{
		readonly action: 'create' | 'update' | 'delete';
		readonly path: string;
		readonly cid: string | null;
		/** The bytes of the record, a view of the frame; undefined for a delete. */
		readonly record: Uint8Array | undefined;
		/** The rule that the record breaks, if it is signed and not valid; otherwise null. */
		readonly invalid: { readonly code: string; readonly rule: string; readonly offset: number } | null;
	}>;
}

/** The states of accounts: plain data that JSON can hold. */
export interface JudgeState {
	readonly version: 1;
	readonly accounts: ReadonlyArray<{
		readonly did: string;
		readonly active: boolean;
		readonly sync: 'synchronized' | 'desynchronized' | 'in-progress';
		readonly head: { readonly rev: string; readonly data: string; readonly commit: string } | null;
	}>;
}

/**
 * Verifies frames of `com.atproto.sync.subscribeRepos`: signature, operations, and continuity of each account's commits.
 *
 * Frames of one account must be in the order of the stream. A refused frame changes no state. Call `free` when you no longer
 * need the judge.
 */
export class Judge implements Disposable {
	constructor(options?: JudgeOptions);
	/** Sets the key of an account as `did:key`; null forgets it. */
	setKey(did: string, key: string | null): void;
	/** The accounts that the frames name and whose keys are not set: resolve them, and call `setKey`, before you judge. */
	unknownAccounts(frames: Uint8Array[]): string[];
	/** Judges one frame. `now` is a date or milliseconds since 1970. Default: the clock. */
	judge(frame: Uint8Array, options?: { now?: number | Date }): Outcome;
	/** Judges frames in their order: the same outcomes, sooner. */
	judgeMany(frames: Iterable<Uint8Array>, options?: { now?: number | Date }): Outcome[];
	/** The states of all accounts, to be stored. */
	exportState(): JudgeState;
	/** Adds the states that {@link exportState} returned, all or none. */
	importState(state: JudgeState): void;
	/** Releases the memory. */
	free(): void;
	[Symbol.dispose](): void;
}

/** Nostr events. */
export namespace nostr {
	/** An event of NIP-01. */
	interface Event {
		id: string;
		pubkey: string;
		created_at: number;
		kind: number;
		tags: string[][];
		content: string;
		sig: string;
	}

	/** What is proved of an event. */
	interface Verdict {
		/** Whether the id and the signature are right. */
		readonly verified: boolean;
		/** `verified`, or the stable code of the broken rule. */
		readonly code: string;
		/** The id; undefined if the event cannot be read. */
		readonly id?: string;
		/** The broken rule as a sentence. */
		readonly rule?: string;
		/** Bytes from the start of the JSON to the part that cannot be read. */
		readonly offset?: number;
	}

	interface Options {
		/** Which serialization of control characters makes an id: NIP-01 to the letter is `verbatim`. Default: either. */
		ids?: 'either' | 'verbatim' | 'escaped';
	}

	/** Verifies the id and the signature of an event: an object, its JSON, or the JSON as bytes. */
	function verify(event: Event | string | Uint8Array, options?: Options): Verdict;

	/** Verifies many events in one batch. */
	function verifyMany(events: Iterable<Event | string | Uint8Array>, options?: Options): Verdict[];
}
