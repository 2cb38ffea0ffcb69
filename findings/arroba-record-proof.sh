#!/bin/sh
# `getRecord` of arroba adds the tree nodes on the way to the name of the collection, not to the record, so that most answers do not
# prove their record. Of a record that is not there it sends an error instead of a proof of its absence. `getBlocks` sends every node.
. "$(dirname "$0")/common.sh"
needs python3
python_packages 'arroba[datastore,flask]==3.1' lexrpc==3.0 carbox==0.3
cat > proofs.py <<'PY'
import os
import sys

os.environ.update(PLC_HOST='plc.test', PDS_HOST='localhost')
from arroba import server, util
import arroba.xrpc_sync
from arroba.repo import Repo, Write
from arroba.storage import Action, MemoryStorage
from carbox import read_car
from flask import Flask
import lexrpc.flask_server

DID = 'did:plc:ewvi7nxzyoun6zhxrhs64oiz'
server.storage = MemoryStorage()
repo = Repo.create(server.storage, DID, signing_key=util.new_key())
for number in range(60):
    for name in ('like', 'note', 'thing'):
        collection = f'com.example.{name}'
        record = {'$type': collection, 'number': number}
        write = Write(Action.CREATE, collection, f'{number:03}', record)
        server.storage.commit(repo, [write])
app = Flask('pds')
lexrpc.flask_server.init_flask(server.server, app)
client = app.test_client()


def get(method, **query):
    return client.get(f'/xrpc/com.atproto.sync.{method}', query_string={'did': DID, **query})


def blocks_of(answer):
    roots, blocks = read_car(answer.data)
    return roots, {block.cid: block.decoded for block in blocks}


def finds(node, blocks, key):
    """Whether the nodes among these blocks lead from `node` to `key`."""
    while node in blocks:
        name, child = b'', blocks[node]['l']
        for entry in blocks[node]['e']:
            name = name[:entry['p']] + entry['k']
            if name >= key:
                break
            child = entry['t']
        if name == key:
            return True
        node = child
    return False


def is_proved(number):
    roots, blocks = blocks_of(get('getRecord', collection='com.example.note', rkey=f'{number:03}'))
    return finds(blocks[roots[0]]['data'], blocks, f'com.example.note/{number:03}'.encode())


if sys.argv[1] == 'proved':
    print(f'{sum(map(is_proved, range(60)))} of 60')
else:
    print(get('getRecord', collection='com.example.note', rkey='absent').json['error'])
PY
expect "arroba, records that getRecord proves" "$(venv/bin/python proofs.py proved 2> log)" "14 of 60"
expect "arroba, getRecord of an absent record" "$(venv/bin/python proofs.py absent 2> log)" RecordNotFound
