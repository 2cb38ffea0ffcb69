#!/bin/sh
# @atcute/cbor refuses a whole record for one link that is no CIDv1 with SHA-256 under DAG-CBOR or raw. DAG-CBOR allows them,
# and @ipld/dag-cbor gives the bytes back.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @ipld/dag-cbor@10.0.2 @atcute/cbor@2.3.6
cat > again.mjs <<'JS'
const { decode, encode } = await import(process.argv[2]);
const link = (prefix, digest) => {
  const cid = prefix + '11'.repeat(digest);
  return `a1616cd82a58${(cid.length / 2 + 1).toString(16)}00${cid}`;
};
const cases = { v0: link('1220', 32), sha512: link('01711340', 64), dagpb: link('01701220', 32) };
for (const [name, record] of Object.entries(cases)) {
  try {
    const again = Buffer.from(encode(decode(Buffer.from(record, 'hex')))).toString('hex');
    console.log(name, again === record ? 'kept' : again);
  } catch (error) {
    console.log(name, error.message);
  }
}
JS
expect "@ipld/dag-cbor 10.0.2" "$(node again.mjs @ipld/dag-cbor | paste -sd, -)" "v0 kept,sha512 kept,dagpb kept"
expect "@atcute/cbor 2.3.6" "$(node again.mjs @atcute/cbor | paste -sd, -)" \
    "v0 invalid binary cid,sha512 invalid binary cid,dagpb incorrect cid codec (got 0x70)"
