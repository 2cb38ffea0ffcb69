#!/bin/sh
# The models of the Python package atproto add a `$type` to objects within a record and drop fields that are null: a record that is
# read into its model and written back has another CID.
. "$(dirname "$0")/common.sh"
needs python3
python_packages atproto==0.0.73
cat > model.py <<'PY'
from atproto import models
subject = {"uri": "at://did:web:ada.example/app.bsky.feed.post/3mbjrqbb2c22a",
           "cid": "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454"}
like = {"$type": "app.bsky.feed.like", "createdAt": "2026-01-01T00:00:00Z", "subject": subject, "via": None}
again = models.get_model_as_dict(models.get_or_create(like, strict=False))
print(sorted(set(again["subject"]) - set(subject)), sorted(set(like) - set(again)))
PY
expect "atproto 0.0.73, added to the subject, lost" "$(venv/bin/python model.py)" "['\$type'] ['via']"
