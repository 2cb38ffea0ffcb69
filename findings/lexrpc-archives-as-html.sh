#!/bin/sh
# The Flask server of lexrpc, which arroba runs in, states no type for answers that are not JSON, so that archives of repositories are
# sent as HTML.
. "$(dirname "$0")/common.sh"
needs python3
python_packages 'lexrpc[flask]==3.0' flask-sock==0.7.0
cat > served.py <<'PY'
from flask import Flask
from lexrpc.server import Server
import lexrpc.flask_server

server = Server()


@server.method('com.atproto.sync.getRepo')
def get_repo(input, did=None):
    return b'\x11\xa2eroots\x80gversion\x01'


app = Flask('pds')
lexrpc.flask_server.init_flask(server, app)
query = {'did': 'did:plc:ewvi7nxzyoun6zhxrhs64oiz'}
answer = app.test_client().get('/xrpc/com.atproto.sync.getRepo', query_string=query)
print(answer.status_code, answer.content_type)
PY
expect "lexrpc, an archive" "$(venv/bin/python served.py 2> log)" "200 text/html; charset=utf-8"
