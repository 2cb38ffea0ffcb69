use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::*;
use crate::cbor::{self, MAX_DEPTH, Map, Reason, WideInteger, decode};
use crate::cid::{AnyCid, Cid, CidRef, Codec};

/// Any item of the data model, owned, through serde alone.
#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Null,
    Boolean(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Link(AnyCid),
    Array(Vec<Tree>),
    Map(BTreeMap<String, Tree>),
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Boolean(boolean) => serializer.serialize_bool(*boolean),
            Self::Integer(integer) => serializer.serialize_i128(*integer),
            Self::Float(float) => serializer.serialize_f64(*float),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => Bytes(bytes).serialize(serializer),
            Self::Link(cid) => cid.serialize(serializer),
            Self::Array(items) => serializer.collect_seq(items),
            // The order of a `BTreeMap` is not the canonical one.
            Self::Map(entries) => serializer.collect_map(entries),
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any item")
    }
    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }
    fn visit_bool<E>(self, boolean: bool) -> Result<Tree, E> {
        Ok(Tree::Boolean(boolean))
    }
    fn visit_i64<E>(self, integer: i64) -> Result<Tree, E> {
        Ok(Tree::Integer(integer.into()))
    }
    fn visit_u64<E>(self, integer: u64) -> Result<Tree, E> {
        Ok(Tree::Integer(integer.into()))
    }
    fn visit_i128<E>(self, integer: i128) -> Result<Tree, E> {
        Ok(Tree::Integer(integer))
    }
    fn visit_f64<E>(self, float: f64) -> Result<Tree, E> {
        Ok(Tree::Float(float))
    }
    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }
    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Tree, E> {
        Ok(Tree::Bytes(bytes.to_vec()))
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, link: D) -> Result<Tree, D::Error> {
        assert!(!link.is_human_readable());
        AnyCid::deserialize(link).map(Tree::Link)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut tree = Vec::new();
        while let Some(item) = items.next_element()? {
            tree.push(item);
        }
        Ok(Tree::Array(tree))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut tree = BTreeMap::new();
        while let Some((key, value)) = entries.next_entry()? {
            tree.insert(key, value);
        }
        Ok(Tree::Map(tree))
    }
}

/// Asserts that typed reading accepts the same items as `decode`, and that reading and writing are inverse.
fn assert_reads_as_decoded(input: &[u8]) {
    let arena = Arena::new();
    let typed: Result<Tree, _> = from_slice(input);
    let ignored: Result<IgnoredAny, _> = from_slice(input);
    match decode(input, &arena) {
        Ok(value) => {
            let tree = typed.expect("canonical");
            assert!(ignored.is_ok());
            assert_eq!(from_value::<Tree>(&value).as_ref(), Ok(&tree));
            assert_eq!(to_value(&tree, &arena), Ok(value));
            assert_eq!(to_vec(&tree).as_deref(), Ok(input));
        }
        Err(error) => {
            let expected = SerdeFault::Decode(error);
            assert_eq!(typed.unwrap_err().fault(), &expected, "{input:02x?}");
            assert_eq!(ignored.unwrap_err().fault(), &expected, "{input:02x?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_canonical_item_survives_the_round_trip_through_a_type(input in cbor::tests::items()) {
        assert_reads_as_decoded(&input);
    }

    #[test]
    fn damaged_items_are_rejected_as_decode_rejects_them(
        mut input in cbor::tests::items(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        for (at, byte) in damage {
            let at = at.index(input.len());
            input[at] = byte;
        }
        assert_reads_as_decoded(&input);
    }

    #[test]
    fn integers_of_every_width_survive(a: i8, b: u16, c: i64, d: u64, wide in -(1i128 << 64)..(1i128 << 64)) {
        let content = (a, b, c, d, wide);
        prop_assert_eq!(from_slice::<(i8, u16, i64, u64, i128)>(&to_vec(&content)?)?, content);
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Empty,
    Circle(u32),
    Box(u32, u32),
    Named { name: String, cid: Option<Cid> },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "$type")]
enum Tagged {
    #[serde(rename = "example.link")]
    Link { cid: Cid, bytes: ByteBuf },
    #[serde(rename = "example.nested")]
    Nested { inner: Vec<Tagged> },
}

/// serde buffers the fields of a tagged enum of this kind.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "$type")]
enum TaggedNewtype {
    Variant(Content),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Content {
    Named { cid: Cid, bytes: ByteBuf },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(u8),
    Cid(AnyCid),
    Bytes(ByteBuf),
    Text(String),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Flattened {
    name: String,
    #[serde(flatten)]
    rest: BTreeMap<String, Untagged>,
}

fn cid() -> Cid {
    Cid::of(Codec::DagCbor, b"\xa0")
}

/// The start of a link in the form of bytes.
fn cid_bytes() -> &'static [u8] {
    b"\x01\x71\x12\x20"
}

/// Asserts that `content` survives DAG-CBOR through bytes, values and JSON.
fn assert_survives<T>(content: &T)
where
    T: Serialize + for<'de> Deserialize<'de> + PartialEq + fmt::Debug,
{
    let bytes = to_vec(content).unwrap();
    assert!(validate(&bytes).is_ok(), "{bytes:02x?}");
    assert_eq!(&from_slice::<T>(&bytes).unwrap(), content);
    let arena = Arena::new();
    let value = decode(&bytes, &arena).unwrap();
    assert_eq!(&from_value::<T>(&value).unwrap(), content);
    let json = serde_json::to_string(content).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), content, "{json}");
    assert_eq!(crate::json::decode(&json, &arena).unwrap(), value, "{json}");
}

#[test]
fn enums_in_every_form_survive() {
    let named = |cid| Shape::Named { name: "n".into(), cid };
    let named = [named(Some(cid())), named(None)];
    for shape in [Shape::Empty, Shape::Circle(7), Shape::Box(1, 2)].into_iter().chain(named) {
        assert_survives(&shape);
    }
    let link = || Tagged::Link { cid: cid(), bytes: ByteBuf(vec![0, 255]) };
    assert_survives(&Tagged::Nested { inner: vec![link(), link()] });
    let content = Content::Named { cid: cid(), bytes: ByteBuf(vec![0, 255]) };
    assert_survives(&TaggedNewtype::Variant(content));
    for content in [
        Untagged::Number(1),
        Untagged::Cid(cid().into()),
        Untagged::Bytes(ByteBuf(vec![1])),
        Untagged::Text("t".into()),
    ] {
        assert_survives(&content);
    }
    let rest = [("a", Untagged::Cid(cid().into())), ("zz", Untagged::Bytes(ByteBuf(vec![])))];
    let rest = rest.map(|(key, content)| (key.to_owned(), content)).into();
    assert_survives(&Flattened { name: "n".into(), rest });
}

#[test]
fn links_and_bytes_have_their_own_forms() {
    let (link, bytes) = (to_vec(&cid()).unwrap(), to_vec(&ByteBuf(b"hi!?".to_vec())).unwrap());
    assert_eq!(link[..4], *b"\xd8\x2a\x58\x25");
    assert_eq!(bytes, b"\x44hi!?");
    assert_eq!(serde_json::to_string(&cid()).unwrap(), format!(r#"{{"$link":"{}"}}"#, cid()));
    assert_eq!(serde_json::to_string(&Bytes(b"hi!?")).unwrap(), r#"{"$bytes":"aGkhPw"}"#);
    let padded: ByteBuf = serde_json::from_str(r#"{"$bytes":"aGkhPw=="}"#).unwrap();
    assert_eq!(padded.0, b"hi!?");
}

#[test]
fn text_bytes_and_links_are_borrowed() {
    #[derive(Deserialize)]
    struct Borrowed<'a> {
        text: &'a str,
        raw: &'a [u8],
        #[serde(borrow)]
        bytes: Bytes<'a>,
        #[serde(borrow)]
        link: CidRef<'a>,
    }
    let mut entries = [
        ("text", Value::Text("t")),
        ("raw", Value::Bytes(b"raw")),
        ("bytes", Value::Bytes(b"bytes")),
        ("link", Value::Link(CidRef::from_bytes(&[1, 0x55, 0, 1, 7]).unwrap())),
    ];
    let input = cbor::encode(&Value::Map(Map::from_entries(&mut entries).unwrap())).unwrap();
    let arena = Arena::new();
    let value = decode(&input, &arena).unwrap();
    let within = |part: &[u8]| input.as_ptr_range().contains(&part.as_ptr());
    for read in [from_slice::<Borrowed<'_>>(&input).unwrap(), from_value(&value).unwrap()] {
        assert!(within(read.text.as_bytes()) && within(read.raw));
        assert!(within(read.bytes.0) && within(read.link.as_bytes()));
    }
}

#[test]
fn keys_are_sorted_and_none_and_unit_are_null() {
    #[derive(Serialize)]
    struct Unsorted {
        longer: Option<u8>,
        b: (),
        a: Option<u8>,
    }
    let bytes = to_vec(&Unsorted { longer: Some(1), b: (), a: None }).unwrap();
    assert_eq!(bytes, b"\xa3\x61a\xf6\x61b\xf6\x66longer\x01");
}

#[test]
fn content_without_a_form_is_rejected_with_the_path() {
    let fault = |error: SerdeError| (error.path().to_owned(), error.fault().clone());
    let at = |path: &str, fault| (path.to_owned(), fault);
    let floats = BTreeMap::from([("x", vec![f64::NAN])]);
    assert_eq!(fault(to_vec(&floats).unwrap_err()), at("", SerdeFault::Encode(EncodeError::Float)));
    let keys = vec![BTreeMap::from([(1, 2)])];
    assert_eq!(fault(to_vec(&keys).unwrap_err()), at("/0", SerdeFault::KeyNotText));
    let wide = BTreeMap::from([("x", (0, u128::MAX))]);
    assert_eq!(fault(to_vec(&wide).unwrap_err()), at("/x/1", SerdeFault::IntegerRange));
    for integer in [1i128 << 64, -(1i128 << 64) - 1, i128::MIN, i128::MAX] {
        assert_eq!(to_vec(&integer).unwrap_err().fault(), &SerdeFault::IntegerRange);
    }
    struct Twice;
    impl Serialize for Twice {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([("k", 1), ("k", 2)])
        }
    }
    assert_eq!(to_vec(&Twice).unwrap_err().fault(), &SerdeFault::DuplicateKey("k".into()));
}

#[test]
fn another_shape_is_rejected_with_the_path() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Inner {
        cid: Cid,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Outer {
        list: Vec<Inner>,
        name: String,
    }
    let message = |json: &str| {
        let arena = Arena::new();
        let value = crate::json::decode(json, &arena).unwrap();
        let from_value = from_value::<Outer>(&value).unwrap_err();
        let input = cbor::encode(&value).unwrap();
        assert_eq!(from_slice::<Outer>(&input).unwrap_err(), from_value);
        from_value.to_string()
    };
    assert_eq!(
        message(r#"{"list":[],"name":1}"#),
        "at /name: invalid type: integer `1`, expected a string"
    );
    assert_eq!(message(r#"{"list":[]}"#), "missing field `name`");
    let expected = "at /list/0/cid: invalid type: string \"x\", expected a link to DAG-CBOR or raw bytes under SHA-256";
    assert_eq!(message(r#"{"list":[{"cid":"x"}],"name":""}"#), expected);
    // Bytes are not a link, whatever their content; nor is a map with the key of its JSON form.
    let bytes = to_vec(&Bytes(cid().as_bytes())).unwrap();
    assert!(from_slice::<Cid>(&bytes).is_err());
    assert!(from_slice::<Untagged>(&bytes).is_ok_and(|read| matches!(read, Untagged::Bytes(_))));
    assert!(
        from_slice::<Cid>(&to_vec(&BTreeMap::from([("$link", cid().to_string())])).unwrap())
            .is_err()
    );
    assert!(from_slice::<ByteBuf>(&to_vec(&cid()).unwrap()).is_err());
    let foreign = CidRef::from_bytes(&[1, 0x55, 0, 1, 7]).unwrap();
    assert!(from_slice::<Cid>(&to_vec(&foreign).unwrap()).is_err());
    assert_eq!(from_slice::<AnyCid>(&to_vec(&foreign).unwrap()).unwrap(), foreign.into());
    assert!(serde_json::from_str::<Cid>(r#"{"$link":"x"}"#).is_err());
    assert!(serde_json::from_str::<ByteBuf>(r#"{"$bytes":"AA","more":1}"#).is_err());
}

#[test]
fn what_is_no_link_or_byte_string_is_rejected_with_what_was_expected() {
    #[track_caller]
    fn assert_expects<T: fmt::Debug, E: fmt::Display>(read: Result<T, E>, expected: &str) {
        let error = read.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let link = to_vec(&cid()).unwrap();
    assert_expects(from_slice::<ByteBuf>(&link), "invalid type: a link, expected a byte string");
    let foreign = to_vec(&CidRef::from_bytes(&[1, 0x55, 0, 1, 7]).unwrap()).unwrap();
    assert_expects(from_slice::<Cid>(&foreign), "another link, expected a link to DAG-CBOR");
    let two = to_vec(&BTreeMap::from([("Circle", 1), ("Empty", 2)])).unwrap();
    assert_expects(from_slice::<Shape>(&two), "expected the name of a variant, or a map of one");
    let other_key = format!(r#"{{"link":"{}"}}"#, cid());
    assert_expects(serde_json::from_str::<Cid>(&other_key), "expected the key $link");
    let internal_key = r#"{"$wireproof::link":"x"}"#;
    assert_expects(serde_json::from_str::<ByteBuf>(internal_key), "expected the key $bytes");
    assert_expects(serde_json::from_str::<Bytes<'_>>(r#"{"$bytes":"AA"}"#), "use `ByteBuf`");
}

#[test]
fn bytes_that_cannot_be_borrowed_are_read_by_the_owning_type_only() {
    let transient = || serde::de::value::BytesDeserializer::<SerdeError>::new(cid_bytes());
    assert_eq!(ByteBuf::deserialize(transient()).unwrap().0, cid_bytes());
    assert!(Bytes::deserialize(transient()).is_err());
    assert!(Cid::deserialize(transient()).is_err(), "a byte string is never a link");
}

#[test]
fn a_type_with_a_compact_form_uses_it() {
    let address = std::net::Ipv4Addr::LOCALHOST;
    let bytes = to_vec(&address).unwrap();
    assert_eq!(bytes, b"\x84\x18\x7f\x00\x00\x01");
    assert_eq!(from_slice::<std::net::Ipv4Addr>(&bytes), Ok(address));
}

#[test]
fn a_type_that_reads_less_than_there_is_is_an_error() {
    let three = to_vec(&[1, 2, 3]).unwrap();
    let error = from_slice::<(u8, u8)>(&three).unwrap_err();
    assert_eq!(error.to_string(), "invalid length 3, expected 2 items");
    let trailing = from_slice::<u8>(&[1, 2]).unwrap_err();
    let expected = DecodeError { offset: 1, reason: Reason::TrailingBytes };
    assert_eq!(trailing.fault(), &SerdeFault::Decode(expected));
}

#[test]
fn depth_is_bounded_both_ways() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Nested(Vec<Nested>);
    let nested = |levels| (1..levels).fold(Nested(vec![]), |inner, _| Nested(vec![inner]));
    let levels = MAX_DEPTH as usize;
    assert_eq!(from_slice::<Nested>(&to_vec(&nested(levels)).unwrap()), Ok(nested(levels)));
    let error = to_vec(&nested(levels + 1)).unwrap_err();
    assert_eq!(error.fault(), &SerdeFault::Encode(EncodeError::Depth));
    let arena = Arena::new();
    let deep = (0..100_000).fold(Value::Array(&[]), |v, _| Value::Array(arena.alloc([v])));
    let error = from_value::<Nested>(&deep).unwrap_err();
    assert_eq!(error.fault(), &SerdeFault::Encode(EncodeError::Depth));
    let value = to_value(&nested(levels), &arena).unwrap();
    assert_eq!(from_value::<Nested>(&value), Ok(nested(levels)));
    let one_more = Value::Array(arena.alloc([value]));
    assert_eq!(from_value::<Nested>(&one_more), Err(error.clone()));
    assert_eq!(to_value(&nested(levels + 1), &arena), Err(error));
    let bomb = std::thread::Builder::new().stack_size(1 << 20);
    let bomb = bomb.spawn(|| from_slice::<Tree>(&[0x81].repeat(1_000_000)).unwrap_err()).unwrap();
    let expected = DecodeError { offset: levels, reason: Reason::Depth };
    assert_eq!(bomb.join().unwrap().fault(), &SerdeFault::Decode(expected));
}

#[test]
fn integers_beyond_64_bits_with_a_sign_keep_their_value() {
    let arena = Arena::new();
    let value = to_value(&u64::MAX, &arena).unwrap();
    assert_eq!(value, Value::WideInteger(WideInteger::Positive(u64::MAX)));
    assert!(from_value::<i64>(&value).is_err());
    let lowest = to_value(&(-(1i128 << 64)), &arena).unwrap();
    assert_eq!(lowest, Value::WideInteger(WideInteger::Negative(u64::MAX)));
    assert_eq!(from_value::<i128>(&lowest), Ok(-(1i128 << 64)));
}
