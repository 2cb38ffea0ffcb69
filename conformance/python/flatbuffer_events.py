"""Events in FlatBuffers, read through the code that `flatc` makes of `docs/formats/nostr/flatbuffers.fbs`."""

import importlib.util
import subprocess
import tempfile
from pathlib import Path

from schemas import FOLDER, compiler


def generated():
    """The module of the schema."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--python", "--gen-onefile", "--gen-object-api", "-o", folder]
        subprocess.run([compiler("flatc"), *options, FOLDER / "flatbuffers.fbs"], check=True)
        path = Path(folder) / "flatbuffers_generated.py"
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


CODE = generated()


def events(data, batch):
    """The events of a buffer whose root is one, or a batch of them."""
    root = CODE.EventBatchT if batch else CODE.EventT
    root = root.InitFromPackedBuf(data)
    return [fields(event) for event in (root.events if batch else [root])]


def fields(event):
    """The fields of an object by their names in JSON."""
    return {
        "id": bytes(event.id),
        "pubkey": bytes(event.pubkey),
        "created_at": event.createdAt,
        "kind": event.kind,
        "tags": [[value(each) for each in tag.values] for tag in event.tags],
        "content": event.content.decode(),
        "sig": bytes(event.sig),
    }


def value(each):
    return bytes(each.hex) if each.text is None else each.text.decode()
