@0xb2d1c1b7e3a94f10;

# The formats `capnp` and `capnp-schema` of Nostr events; `capnp-packed` and `capnp-schema-packed` are packed messages of them. What
# decoders check beyond this schema is in capnp.md.

# The event of `capnp`: the envelope of the published comparison of formats, two blobs whose layout is in capnp.md.
struct NostrEvent {
  fixedData @0 :Data;
  tagData @1 :Data;
  content @2 :Text;
}

# The batch of `capnp`.
struct EventBatch {
  events @0 :List(NostrEvent);
}

# The event of `capnp-schema`, with a field for each field of the event.
struct Event {
  # 32 bytes.
  id @0 :Data;
  # 32 bytes.
  pubkey @1 :Data;
  # Seconds since 1970.
  createdAt @2 :Int64;
  kind @3 :UInt16;
  tags @4 :List(List(TagValue));
  content @5 :Text;
  # 64 bytes.
  sig @6 :Data;
}

struct TagValue {
  union {
    text @0 :Text;
    # The text is the lower-case hexadecimal of these bytes. Written for at least eight digits, an even number.
    hex @1 :Data;
  }
}

# The batch of `capnp-schema`.
struct Events {
  events @0 :List(Event);
}
