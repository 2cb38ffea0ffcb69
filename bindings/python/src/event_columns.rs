//! Nostr events as columns: `id`, `pubkey`, `created_at`, `kind`, `tags`, `content` and `sig`, read from the types that libraries
//! have for them, and built.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{
    Int64Builder, LargeStringBuilder, ListBuilder, StringBuilder, UInt16Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, LargeListArray, ListArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use kernels::hex;
use nostr::{Arena, Event, Tag, Value};
use pyo3::prelude::*;

use crate::columns::{BytesColumn, TextColumn};
use crate::record_batches::{column_index, column_type_error};

/// Where the columns of events are in a schema.
#[derive(Clone, Copy)]
pub(crate) struct EventFields {
    id: usize,
    pubkey: usize,
    created_at: usize,
    kind: usize,
    tags: usize,
    content: usize,
    sig: usize,
}

impl EventFields {
    /// Finds the columns and checks their types.
    pub(crate) fn find(argument: &str, schema: &Schema) -> PyResult<Self> {
        let column = |name, expected, is_expected: fn(&DataType) -> bool| {
            let index = column_index(argument, schema, name)?;
            if is_expected(schema.field(index).data_type()) {
                Ok(index)
            } else {
                Err(column_type_error(argument, schema.field(index), expected))
            }
        };
        let digits = "text of hexadecimal digits or binary";
        Ok(Self {
            id: column("id", digits, is_digits)?,
            pubkey: column("pubkey", digits, is_digits)?,
            created_at: column("created_at", "an integer", DataType::is_integer)?,
            kind: column("kind", "an integer", DataType::is_integer)?,
            tags: column("tags", "lists of lists of text", is_tags)?,
            content: column("content", "text", is_text)?,
            sig: column("sig", digits, is_digits)?,
        })
    }
}

fn is_digits(column: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
    is_text(column) || matches!(column, Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
}

fn is_text(column: &DataType) -> bool {
    matches!(column, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_tags(column: &DataType) -> bool {
    let item = |list: &DataType| match list {
        DataType::List(item) | DataType::LargeList(item) => Some(item.data_type().clone()),
        _ => None,
    };
    let is_value = |value: DataType| value.is_null() || is_text(&value);
    item(column).is_some_and(|tag| tag.is_null() || item(&tag).is_some_and(is_value))
}

/// The columns of the events of a batch.
pub(crate) struct EventColumns {
    id: DigitsColumn,
    pubkey: DigitsColumn,
    created_at: IntegerColumn,
    kind: IntegerColumn,
    tags: TagsColumn,
    content: TextColumn,
    sig: DigitsColumn,
}

impl EventColumns {
    pub(crate) fn new(fields: EventFields, batch: &RecordBatch) -> Self {
        Self {
            id: DigitsColumn::new(batch.column(fields.id)),
            pubkey: DigitsColumn::new(batch.column(fields.pubkey)),
            created_at: IntegerColumn(batch.column(fields.created_at).clone()),
            kind: IntegerColumn(batch.column(fields.kind).clone()),
            tags: TagsColumn::new(batch.column(fields.tags)),
            content: TextColumn::new(batch.column(fields.content)),
            sig: DigitsColumn::new(batch.column(fields.sig)),
        }
    }

    /// The event of a row, or the field that is not one of an event; its lists are allocated in `arena`.
    pub(crate) fn event<'a>(
        &'a self,
        row: usize,
        arena: &'a Arena,
    ) -> Result<Event<'a>, &'static str> {
        Ok(Event {
            id: self.id.get(row).ok_or("`id` is not 32 bytes or 64 hexadecimal digits")?,
            pubkey: self
                .pubkey
                .get(row)
                .ok_or("`pubkey` is not 32 bytes or 64 hexadecimal digits")?,
            created_at: self
                .created_at
                .get(row)
                .ok_or("`created_at` is not an integer of 64 bits")?,
            kind: self.kind.get(row).ok_or("`kind` is not an integer of 0 to 65,535")?,
            tags: self.tags.get(row, arena).ok_or("`tags` has a null")?,
            content: self.content.get(row).ok_or("`content` is null")?,
            sig: self.sig.get(row).ok_or("`sig` is not 64 bytes or 128 hexadecimal digits")?,
        })
    }

    /// The size of a row in bytes: its content, its values, and 24 bytes per value and tag.
    pub(crate) fn size(&self, row: usize) -> usize {
        self.content.get(row).map_or(0, str::len) + self.tags.size(row)
    }
}

/// A column of fixed lengths of bytes, as they are or as hexadecimal.
enum DigitsColumn {
    Text(TextColumn),
    Bytes(BytesColumn),
    Fixed(FixedSizeBinaryArray),
}

impl DigitsColumn {
    fn new(column: &ArrayRef) -> Self {
        match column.data_type() {
            DataType::FixedSizeBinary(_) => Self::Fixed(column.as_fixed_size_binary().clone()),
            other if is_text(other) => Self::Text(TextColumn::new(column)),
            _ => Self::Bytes(BytesColumn::new(column)),
        }
    }

    fn get<const N: usize>(&self, row: usize) -> Option<[u8; N]> {
        match self {
            Self::Text(column) => from_digits(column.get(row)?.as_bytes()),
            Self::Bytes(column) => column.get(row)?.try_into().ok(),
            Self::Fixed(column) if column.is_valid(row) => column.value(row).try_into().ok(),
            Self::Fixed(_) => None,
        }
    }
}

fn from_digits<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (digits.len() == 2 * N && hex::decode(digits, &mut bytes)).then_some(bytes)
}

/// A column of integers of any width.
struct IntegerColumn(ArrayRef);

impl IntegerColumn {
    /// The integer of a row, unless it is null or out of range.
    fn get<T: TryFrom<i128>>(&self, row: usize) -> Option<T> {
        let integer: i128 = match self.0.data_type() {
            DataType::Int8 => self.of::<Int8Type>(row).into(),
            DataType::Int16 => self.of::<Int16Type>(row).into(),
            DataType::Int32 => self.of::<Int32Type>(row).into(),
            DataType::Int64 => self.of::<Int64Type>(row).into(),
            DataType::UInt8 => self.of::<UInt8Type>(row).into(),
            DataType::UInt16 => self.of::<UInt16Type>(row).into(),
            DataType::UInt32 => self.of::<UInt32Type>(row).into(),
            _ => self.of::<UInt64Type>(row).into(),
        };
        T::try_from(integer).ok().filter(|_| self.0.is_valid(row))
    }

    fn of<T: ArrowPrimitiveType>(&self, row: usize) -> T::Native {
        self.0.as_primitive::<T>().value(row)
    }
}

/// A column of lists of lists of texts. Where all lists are empty, the type of their items can be null.
struct TagsColumn {
    tags: ListColumn,
    values: Option<ListColumn>,
    texts: Option<TextColumn>,
}

impl TagsColumn {
    fn new(column: &ArrayRef) -> Self {
        let tags = ListColumn::new(column);
        let items = Some(tags.items()).filter(|items| !items.data_type().is_null());
        let values = items.map(ListColumn::new);
        let items = values.as_ref().map(ListColumn::items);
        let items = items.filter(|items| !items.data_type().is_null());
        let texts = items.map(TextColumn::new);
        Self { tags, values, texts }
    }

    /// The tags of a row, unless something in them is null.
    fn get<'a>(&'a self, row: usize, arena: &'a Arena) -> Option<&'a [Tag<'a>]> {
        let tags: Option<Vec<Tag<'a>>> =
            self.tags.range(row)?.map(|tag| self.tag(tag, arena)).collect();
        Some(arena.alloc_slice_copy(&tags?))
    }

    fn tag<'a>(&'a self, tag: usize, arena: &'a Arena) -> Option<Tag<'a>> {
        let value = |at| self.text(at).map(Value::Text);
        let values: Option<Vec<Value<'a>>> = self.values(tag)?.map(value).collect();
        Some(arena.alloc_slice_copy(&values?))
    }

    /// Which values a tag has; none if it is null.
    fn values(&self, tag: usize) -> Option<Range<usize>> {
        self.values.as_ref()?.range(tag)
    }

    fn text(&self, at: usize) -> Option<&str> {
        self.texts.as_ref()?.get(at)
    }

    fn size(&self, row: usize) -> usize {
        let text = |at| LIST_BYTES + self.text(at).map_or(0, str::len);
        let values = |tag| self.values(tag).into_iter().flatten();
        let tag = |tag| LIST_BYTES + values(tag).map(text).sum::<usize>();
        self.tags.range(row).into_iter().flatten().map(tag).sum()
    }
}

/// A column of lists.
enum ListColumn {
    Small(ListArray),
    Large(LargeListArray),
}

impl ListColumn {
    fn new(column: &ArrayRef) -> Self {
        match column.data_type() {
            DataType::LargeList(_) => Self::Large(column.as_list().clone()),
            _ => Self::Small(column.as_list().clone()),
        }
    }

    /// The items of the lists, one after the other.
    fn items(&self) -> &ArrayRef {
        match self {
            Self::Small(lists) => lists.values(),
            Self::Large(lists) => lists.values(),
        }
    }

    /// Which items a list has; none if it is null.
    fn range(&self, row: usize) -> Option<Range<usize>> {
        match self {
            Self::Small(lists) if lists.is_valid(row) => {
                let ends = lists.value_offsets();
                Some(ends[row] as usize..ends[row + 1] as usize)
            }
            Self::Large(lists) if lists.is_valid(row) => {
                let ends = lists.value_offsets();
                Some(ends[row] as usize..ends[row + 1] as usize)
            }
            _ => None,
        }
    }
}

/// Builds the columns of events.
pub(crate) struct EventRows {
    id: StringBuilder,
    pubkey: StringBuilder,
    created_at: Int64Builder,
    kind: UInt16Builder,
    tags: ListBuilder<ListBuilder<LargeStringBuilder>>,
    content: LargeStringBuilder,
    sig: StringBuilder,
}

impl Default for EventRows {
    fn default() -> Self {
        Self {
            id: StringBuilder::new(),
            pubkey: StringBuilder::new(),
            created_at: Int64Builder::new(),
            kind: UInt16Builder::new(),
            tags: ListBuilder::new(ListBuilder::new(LargeStringBuilder::new())),
            content: LargeStringBuilder::new(),
            sig: StringBuilder::new(),
        }
    }
}

impl EventRows {
    pub(crate) fn push(&mut self, event: &Event<'_>) {
        self.id.append_value(hex::encode(&event.id));
        self.pubkey.append_value(hex::encode(&event.pubkey));
        self.created_at.append_value(event.created_at);
        self.kind.append_value(event.kind);
        for tag in event.tags {
            let values = self.tags.values();
            tag.iter().for_each(|value| values.values().append_value(value.to_text()));
            values.append(true);
        }
        self.tags.append(true);
        self.content.append_value(event.content);
        self.sig.append_value(hex::encode(&event.sig));
    }

    /// A row without an event.
    pub(crate) fn push_null(&mut self) {
        self.id.append_null();
        self.pubkey.append_null();
        self.created_at.append_null();
        self.kind.append_null();
        self.tags.append(false);
        self.content.append_null();
        self.sig.append_null();
    }

    pub(crate) fn finish(mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.id.finish()),
            Arc::new(self.pubkey.finish()),
            Arc::new(self.created_at.finish()),
            Arc::new(self.kind.finish()),
            Arc::new(self.tags.finish()),
            Arc::new(self.content.finish()),
            Arc::new(self.sig.finish()),
        ]
    }
}

/// The columns of events; if rows may have none, the columns can be null.
pub(crate) fn event_fields(is_nullable: bool) -> Vec<Field> {
    let tag = DataType::new_list(DataType::LargeUtf8, true);
    vec![
        Field::new("id", DataType::Utf8, is_nullable),
        Field::new("pubkey", DataType::Utf8, is_nullable),
        Field::new("created_at", DataType::Int64, is_nullable),
        Field::new("kind", DataType::UInt16, is_nullable),
        Field::new("tags", DataType::new_list(tag, true), is_nullable),
        Field::new("content", DataType::LargeUtf8, is_nullable),
        Field::new("sig", DataType::Utf8, is_nullable),
    ]
}

/// Bytes that a tag or a value takes in addition to its text.
const LIST_BYTES: usize = 24;
