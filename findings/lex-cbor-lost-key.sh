#!/bin/sh
# @atproto/lex-cbor loses the key `__proto__` of a record, without an error: encoded again, the record is another one.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @atcute/cbor@2.3.6 @atproto/lex-cbor@0.1.6
cat > keys.mjs <<'JS'
const { decode, encode } = await import(process.argv[2]);
const record = decode(Buffer.from('a2616101695f5f70726f746f5f5f6568656c6c6f', 'hex'));
console.log(Object.keys(record).join(' '), Buffer.from(encode(record)).toString('hex'));
JS
expect "@atcute/cbor 2.3.6, {a: 1, __proto__: \"hello\"}" "$(node keys.mjs @atcute/cbor)" \
    "a __proto__ a2616101695f5f70726f746f5f5f6568656c6c6f"
expect "@atproto/lex-cbor 0.1.6, {a: 1, __proto__: \"hello\"}" "$(node keys.mjs @atproto/lex-cbor)" "a a1616101"
