#!/bin/sh
# @atproto/syntax refuses URIs whose scheme has a hyphen or a period, which RFC 3986 allows and the interoperability files of the AT
# Protocol have.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @atproto/syntax@0.7.7
cat > check.mjs <<'JS'
import { isValidUri } from '@atproto/syntax';
console.log(process.argv.slice(2).map((uri) => isValidUri(uri)).join(' '));
JS
expect "@atproto/syntax 0.7.7, https://a.example, ms-settings:about, web+ap://a.example, iris.beep://a.example" \
    "$(node check.mjs https://a.example ms-settings:about web+ap://a.example iris.beep://a.example)" "true false false false"
