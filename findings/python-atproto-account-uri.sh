#!/bin/sh
# `AtUri` of the Python package atproto writes the URI of an account with a slash at its end, which the syntax of AT URIs forbids and the
# package's own strict validation refuses. `AtUri` of @atproto/syntax keeps the text.
. "$(dirname "$0")/common.sh"
needs node npm python3
npm_packages @atproto/syntax@0.7.7
cat > text.mjs <<'JS'
import { AtUri } from '@atproto/syntax';
console.log(String(new AtUri('at://did:web:alice.test')));
JS
python_packages atproto==0.0.73
cat > text.py <<'PY'
import sys

from atproto_client.models.string_formats import validate_at_uri
from atproto_core.uri import AtUri


class Strict:
    context = {"strict_string_format": True}


text = str(AtUri.from_str(sys.argv[1]))
try:
    print(text, validate_at_uri(text, Strict) == text)
except ValueError as error:
    print(text, error)
PY
expect "@atproto/syntax 0.7.7" "$(node text.mjs)" "at://did:web:alice.test"
expect "atproto 0.0.73, a record" "$(venv/bin/python text.py at://did:web:alice.test/app.test.a/b)" "at://did:web:alice.test/app.test.a/b True"
expect "atproto 0.0.73, an account" "$(venv/bin/python text.py at://did:web:alice.test)" "at://did:web:alice.test/ Invalid AT-URI: invalid format"
