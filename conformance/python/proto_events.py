"""The three schemas of events in Protocol Buffers, described to Google's library."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto


class Schema:
    """Messages of one schema: `event` and `batch` make empty ones."""

    def __init__(self, name, text_keys, typed_values):
        file = descriptor_pb2.FileDescriptorProto(
            name=f"{name}.proto", package=name, syntax="proto3"
        )
        key = Field.TYPE_STRING if text_keys else Field.TYPE_BYTES
        event = file.message_type.add(name="Event")
        add(event, "id", 1, key)
        add(event, "pubkey", 2, key)
        add(event, "created_at", 3, Field.TYPE_INT64)
        add(event, "kind", 4, Field.TYPE_INT32)
        add(event, "tags", 5, Field.TYPE_MESSAGE, f".{name}.Tag", repeated=True)
        add(event, "content", 6, Field.TYPE_STRING)
        add(event, "sig", 7, key)
        tag = file.message_type.add(name="Tag")
        add(tag, "values", 1, Field.TYPE_STRING, repeated=True)
        if typed_values:
            add(tag, "values_v2", 2, Field.TYPE_MESSAGE, f".{name}.TagValue", repeated=True)
            value = file.message_type.add(name="TagValue")
            value.oneof_decl.add(name="value")
            add(value, "text", 1, Field.TYPE_STRING, oneof_index=0)
            add(value, "hex", 2, Field.TYPE_BYTES, oneof_index=0)
        batch = file.message_type.add(name="EventBatch")
        add(batch, "events", 1, Field.TYPE_MESSAGE, f".{name}.Event", repeated=True)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)

        def message(of):
            return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{name}.{of}"))

        self.event, self.batch = message("Event"), message("EventBatch")


def add(message, name, number, kind, type_name=None, repeated=False, **options):
    label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
    message.field.add(
        name=name, number=number, type=kind, label=label, type_name=type_name, **options
    )


def fields(event):
    """The fields of a message by their names in JSON."""
    names = ["id", "pubkey", "created_at", "kind", "content", "sig"]
    return {name: getattr(event, name) for name in names} | {"tags": [values(tag) for tag in event.tags]}


def values(tag):
    typed = getattr(tag, "values_v2", [])
    return list(tag.values) + [getattr(value, value.WhichOneof("value")) for value in typed]
