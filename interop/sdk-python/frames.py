"""Reads frames with the SDK of Python, checked against its models: frames.py SERVICE CURSOR"""

import sys

from atproto import CAR, FirehoseSubscribeReposClient, models, parse_subscribe_repos_message

from output import write, write_error


def write_message(message):
    event = parse_subscribe_repos_message(message)
    if isinstance(event, models.ComAtprotoSyncSubscribeRepos.Commit):
        write_commit(event)
    elif isinstance(event, models.ComAtprotoSyncSubscribeRepos.Sync):
        write(kind="sync", seq=event.seq, did=event.did, rev=event.rev)
    elif isinstance(event, models.ComAtprotoSyncSubscribeRepos.Account):
        write(kind="account", seq=event.seq, did=event.did, active=event.active, status=event.status)
    elif isinstance(event, models.ComAtprotoSyncSubscribeRepos.Identity):
        write(kind="identity", seq=event.seq, did=event.did)
    else:
        raise ValueError(f"unexpected: {event}")
    # Its connection is made again with the parameters as they are then.
    client.update_params({"cursor": event.seq})


def write_commit(commit):
    blocks = CAR.from_bytes(commit.blocks).blocks
    for op in commit.ops:
        if op.cid is not None and op.cid not in blocks:
            raise ValueError(f"{commit.rev} has no record of {op.path}")
        cid = None if op.cid is None else str(op.cid)
        write(kind="commit", seq=commit.seq, did=commit.repo, rev=commit.rev, path=op.path, cid=cid)


service, cursor = sys.argv[1:]
client = FirehoseSubscribeReposClient({"cursor": int(cursor)}, f"{service}/xrpc")
client.start(write_message, write_error)
