#!/bin/sh
# indigo and the Python package atproto refuse a language of private use such as `x-klingon`, which is well-formed by
# BCP 47 and has its like in the interoperability files of the AT Protocol. @atproto/syntax and @atcute/lexicons
# accept it.
. "$(dirname "$0")/common.sh"
needs go node npm python3
npm_packages @atproto/syntax@0.7.7 @atcute/lexicons@2.1.0
python_packages atproto==0.0.73
cat > check.mjs <<'JS'
import { isLanguageCode } from '@atcute/lexicons/syntax';
import { isValidLanguage } from '@atproto/syntax';
console.log(isValidLanguage('x-klingon'), isLanguageCode('x-klingon'));
JS
cat > check.py <<'PY'
from types import SimpleNamespace
from atproto_client.models.string_formats import validate_language
try:
    print(validate_language("x-klingon", SimpleNamespace(context={"strict_string_format": True})))
except ValueError as error:
    print(error)
PY
go_program github.com/bluesky-social/indigo@v0.0.0-20260605210604-af2fec94f34c <<'GO'
package main

import (
	"fmt"

	"github.com/bluesky-social/indigo/atproto/syntax"
)

func main() {
	_, err := syntax.ParseLanguage("x-klingon")
	fmt.Println(err)
}
GO
expect "@atproto/syntax 0.7.7, @atcute/lexicons 2.1.0" "$(node check.mjs)" "true true"
expect "atproto 0.0.73" "$(venv/bin/python check.py)" "Invalid language code: must be ISO language code (e.g. en or en-US)"
expect "indigo of June 2026" "$(./program)" "Language syntax didn't validate via regex"
