"""Events in FlatBuffers, read through the library's own tables.

table EventBatch { events:[Event]; }
table Event    { id:[ubyte]; pubkey:[ubyte]; created_at:long; kind:ushort; tags:[Tag]; content:string; sig:[ubyte]; }
table Tag      { values:[TagValue]; }
table TagValue { text:string; hex:[ubyte]; }
"""

import flatbuffers.encode
import flatbuffers.number_types
import flatbuffers.packer
import flatbuffers.table

types = flatbuffers.number_types


def events(data, batch):
    """The events of a buffer whose root is one, or a batch of them."""
    root = flatbuffers.table.Table(data, flatbuffers.encode.Get(flatbuffers.packer.uoffset, data, 0))
    return [fields(event) for event in (tables(root, 0) if batch else [root])]


def fields(event):
    """The fields of a table by their names in JSON."""
    return {
        "id": octets(event, 0),
        "pubkey": octets(event, 1),
        "created_at": event.GetSlot(slot(2), 0, types.Int64Flags),
        "kind": event.GetSlot(slot(3), 0, types.Uint16Flags),
        "tags": [tag(table) for table in tables(event, 4)],
        "content": text(event, 5),
        "sig": octets(event, 6),
    }


def tag(table):
    return [value(each) for each in tables(table, 0)]


def value(table):
    return text(table, 0) if table.Offset(slot(0)) else octets(table, 1)


def tables(table, number):
    """The tables of a vector; none if the field is absent."""
    place = table.Offset(slot(number))
    if not place:
        return
    start = table.Vector(place)
    for at in range(table.VectorLen(place)):
        yield flatbuffers.table.Table(table.Bytes, table.Indirect(start + 4 * at))


def octets(table, number):
    place = table.Offset(slot(number))
    start = table.Vector(place)
    return bytes(table.Bytes[start : start + table.VectorLen(place)])


def text(table, number):
    return table.String(table.Pos + table.Offset(slot(number))).decode()


def slot(number):
    """The position of a field's offset in the vtable."""
    return 4 + 2 * number
