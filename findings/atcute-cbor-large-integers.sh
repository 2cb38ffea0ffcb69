#!/bin/sh
# @atcute/cbor refuses a whole record for one integer beyond 2^53 - 1, which the data model of the AT Protocol allows up to
# 2^63 - 1; @atproto/lex-cbor decodes it to a bigint.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @atcute/cbor@2.3.6 @atproto/lex-cbor@0.1.6
cat > decode.mjs <<'JS'
const { decode } = await import(process.argv[2]);
try {
  console.log(String(decode(Buffer.from('a161781b0020000000000000', 'hex')).x));
} catch (error) {
  console.log(error.message);
}
JS
expect "@atproto/lex-cbor 0.1.6, 2^53" "$(node decode.mjs @atproto/lex-cbor)" 9007199254740992
expect "@atcute/cbor 2.3.6, 2^53" "$(node decode.mjs @atcute/cbor)" "can't decode integers beyond safe integer range"
