#!/bin/sh
# The libraries of Standard Webhooks parse a body as one JSON document after they have verified it: a rightly signed body of
# several JSON lines is an error, which is not their error for a wrong signature.
. "$(dirname "$0")/common.sh"
needs node npm python3
npm_packages standardwebhooks@1.1.1
python_packages standardwebhooks==1.1.0
cat > verify.mjs <<'JS'
import { Webhook } from 'standardwebhooks';
const webhook = new Webhook(Buffer.from('k'.repeat(24)).toString('base64'));
const [body, now] = ['{"a":1}\n{"a":2}\n', new Date()];
const headers = { 'webhook-id': 'm1', 'webhook-timestamp': String(Math.floor(now / 1000)),
  'webhook-signature': webhook.sign('m1', now, body) };
try {
  console.log(webhook.verify(body, headers));
} catch (error) {
  console.log(error.constructor.name);
}
JS
cat > verify.py <<'PY'
import base64, datetime, standardwebhooks
webhook = standardwebhooks.Webhook(base64.b64encode(b"k" * 24).decode())
body, now = '{"a":1}\n{"a":2}\n', datetime.datetime.now(datetime.timezone.utc)
headers = {"webhook-id": "m1", "webhook-timestamp": str(int(now.timestamp())),
           "webhook-signature": webhook.sign("m1", now, body)}
try:
    print(webhook.verify(body, headers))
except Exception as error:
    print(type(error).__name__)
PY
expect "standardwebhooks 1.1.1 of npm, two lines" "$(node verify.mjs)" SyntaxError
expect "standardwebhooks 1.1.0 of PyPI, two lines" "$(venv/bin/python verify.py)" JSONDecodeError
