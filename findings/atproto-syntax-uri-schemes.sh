#!/bin/sh
# @atproto/syntax and @atcute/lexicons refuse URIs whose scheme has a hyphen or a period, which RFC 3986 allows and the interoperability
# files of the AT Protocol have.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @atproto/syntax@0.7.7 @atcute/lexicons@2.1.0
cat > check.mjs <<'JS'
import { isGenericUri } from '@atcute/lexicons/syntax';
import { isValidUri } from '@atproto/syntax';
const uris = ['https://a.example', 'ms-settings:about', 'web+ap://a.example', 'iris.beep://a.example'];
for (const isValid of [isValidUri, isGenericUri]) console.log(uris.map((uri) => isValid(uri)).join(' '));
JS
expect "@atproto/syntax 0.7.7 and @atcute/lexicons 2.1.0: https:, ms-settings:, web+ap:, iris.beep:" \
    "$(node check.mjs | paste -sd';' -)" "true false false false;true false false false"
