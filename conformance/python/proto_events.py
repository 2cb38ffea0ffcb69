"""Events in Protocol Buffers, read by Google's library with the schemas `docs/formats/nostr/proto-*.proto`."""

import subprocess
import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from schemas import FOLDER, compiler


class Schema:
    """Messages of the schema of a format: `event` and `batch` make empty ones."""

    def __init__(self, format):
        file = descriptor(f"{format}.proto")
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)

        def message(of):
            return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{of}"))

        self.event, self.batch = message("Event"), message("EventBatch")


def descriptor(name):
    """The file of this name, as the compiler describes it."""
    with tempfile.TemporaryDirectory() as folder:
        described = Path(folder) / "descriptors"
        options = [f"--proto_path={FOLDER}", f"--descriptor_set_out={described}"]
        subprocess.run([compiler("protoc"), *options, name], check=True)
        (file,) = descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes()).file
        return file


def fields(event):
    """The fields of a message by their names in JSON."""
    names = ["id", "pubkey", "created_at", "kind", "content", "sig"]
    return {name: getattr(event, name) for name in names} | {"tags": [values(tag) for tag in event.tags]}


def values(tag):
    typed = getattr(tag, "values_v2", [])
    return list(tag.values) + [getattr(value, value.WhichOneof("value")) for value in typed]
