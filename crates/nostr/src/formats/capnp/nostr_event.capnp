@0xb2d1c1b7e3a94f10;

# The envelope of the published comparison of formats: two blobs whose layout is private to it.
struct NostrEvent {
  fixedData @0 :Data;
  tagData @1 :Data;
  content @2 :Text;
}

struct EventBatch {
  events @0 :List(NostrEvent);
}

# The same event as a schema that says what is in it.
struct Event {
  id @0 :Data;
  pubkey @1 :Data;
  createdAt @2 :Int64;
  kind @3 :UInt16;
  tags @4 :List(List(TagValue));
  content @5 :Text;
  sig @6 :Data;
}

struct TagValue {
  union {
    text @0 :Text;
    # The text is the lower-case hexadecimal of these bytes.
    hex @1 :Data;
  }
}

struct Events {
  events @0 :List(Event);
}
