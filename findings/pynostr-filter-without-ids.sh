#!/bin/sh
# A filter of Nostr that pynostr reads from JSON matches no event if it has no `ids`, and its filters on tags are dropped. The same
# filter made in Python matches.
. "$(dirname "$0")/common.sh"
needs python3
python_packages pynostr==0.7.0
cat > filter.py <<'PY'
from pynostr.event import Event
from pynostr.filters import Filters
event = Event(content="", pubkey="00" * 32, created_at=5, kind=1, tags=[["t", "sea"]])
read = Filters.from_dict({"kinds": [1], "#t": ["sea"]})
print("made", Filters(kinds=[1]).matches(event), "read", read.matches(event), read.to_dict())
PY
expect "pynostr 0.7.0, {\"kinds\": [1], \"#t\": [\"sea\"]}" "$(venv/bin/python filter.py)" "made True read False {'ids': '', 'kinds': [1]}"
