"""A PDS of arroba with its storage in memory, on 127.0.0.1. The accounts of HANDLES are created before it listens."""
import os

os.environ['PDS_HOST'] = 'localhost'

from arroba import did, server, util
import arroba.xrpc_identity
import arroba.xrpc_repo
import arroba.xrpc_server
import arroba.xrpc_sync
from arroba.repo import Repo
from arroba.storage import MemoryStorage
from flask import Flask, request
import lexrpc.flask_server
import requests

PORT = int(os.environ['PORT'])
DIRECTORY = os.environ['PLC_URL']
# The library writes to a directory of this name over HTTPS.
os.environ['PLC_HOST'] = 'directory.test'


def post(url, **arguments):
    return requests.post(url.replace('https://directory.test', DIRECTORY), **arguments)


def create(handle):
    identity = did.create_plc(handle, pds_url=f'http://localhost:{PORT}', post_fn=post)
    keys = {'signing_key': identity.signing_key, 'rotation_key': identity.rotation_key}
    Repo.create(server.storage, identity.did, handle=handle, **keys)
    return identity.did


server.storage = MemoryStorage()
accounts = {handle: create(handle) for handle in os.environ['HANDLES'].split(',')}
app = Flask('pds')
lexrpc.flask_server.init_flask(server.server, app)


@app.get('/.well-known/atproto-did')
def well_known():
    return accounts.get(request.host.split(':')[0], ('', 404))


@app.get('/accounts')
def list_accounts():
    return accounts


app.run(host='127.0.0.1', port=PORT)
