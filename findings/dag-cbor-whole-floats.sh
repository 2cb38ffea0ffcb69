#!/bin/sh
# JavaScript codecs of DAG-CBOR decode a float without a fraction to a number and encode that as an integer: a record that is
# decoded and encoded again has other bytes, and so another CID. Valid by DAG-CBOR; AT Protocol data has no floats.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @ipld/dag-cbor@10.0.2 @atcute/cbor@2.3.6 @atproto/lex-cbor@0.1.6
cat > again.mjs <<'JS'
const [library, input] = process.argv.slice(2);
const { decode, encode } = await import(library);
console.log(Buffer.from(encode(decode(Buffer.from(input, 'hex')))).toString('hex'));
JS
for library in @ipld/dag-cbor @atcute/cbor @atproto/lex-cbor; do
    expect "$library, {x: 3.0} encoded again" "$(node again.mjs $library a16178fb4008000000000000)" a1617803
    expect "$library, {x: -0.0} encoded again" "$(node again.mjs $library a16178fb8000000000000000)" a1617800
done
