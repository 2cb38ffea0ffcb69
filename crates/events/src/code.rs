//! The codes of verdicts and findings: stable names of rules.
//!
//! `docs/formats/codes.md` says what every code means and what to do about it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::Text;

macro_rules! codes {
    ($($name:ident = $text:literal,)*) => {
        /// The stable name of a verdict or of a broken rule.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Code<'l> {
            $(
                #[doc = concat!("`", $text, "`")]
                $name,
            )*
            /// A code of a later version.
            Other(Text<'l>),
        }

        impl Code<'static> {
            /// The known codes, in the order of `docs/formats/codes.md`.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }

        impl Code<'_> {
            /// The name.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Other(name) => name,
                }
            }
        }

        impl<'l> From<Text<'l>> for Code<'l> {
            fn from(name: Text<'l>) -> Self {
                match &*name {
                    $($text => Self::$name,)*
                    _ => Self::Other(name),
                }
            }
        }
    };
}

codes! {
    // Verdicts
    Verified = "verified",
    VerifiedBroken = "verified/broken",
    VerifiedUnmended = "verified/unmended",
    VerifiedUnproved = "verified/unproved",
    Unchecked = "unchecked",
    NotAsked = "not-asked",
    StatusConfirmed = "status/confirmed",
    HistoryOutdated = "history/outdated",
    HistoryNarrowed = "history/narrowed",
    Message = "message",

    // Events
    EventStaleRev = "event/stale-rev",
    EventInactive = "event/inactive",
    EventSince = "event/since",
    EventPrevData = "event/prev-data",
    EventDid = "event/did",
    EventHost = "event/host",
    EventLimit = "event/limit",
    EventRevSyntax = "event/rev-syntax",
    EventFutureRev = "event/future-rev",
    EventRoot = "event/root",
    EventCommitCid = "event/commit-cid",
    EventDidMismatch = "event/did-mismatch",
    EventRevMismatch = "event/rev-mismatch",
    EventTooBig = "event/too-big",
    EventRebase = "event/rebase",
    EventPrevDataMissing = "event/prev-data-missing",
    EventPath = "event/path",
    EventDuplicatePath = "event/duplicate-path",
    EventOp = "event/op",
    EventRecordMissing = "event/record-missing",
    EventPartialTree = "event/partial-tree",
    EventInversion = "event/inversion",
    EventTime = "event/time",
    EventSeq = "event/seq",
    EventHandle = "event/handle",
    EventUnchangedUpdate = "event/unchanged-update",
    SeqGap = "seq/gap",
    SeqRepeated = "seq/repeated",
    SeqReused = "seq/reused",
    SeqRegressed = "seq/regressed",

    // Frames and archives
    FrameCbor = "frame/cbor",
    FrameField = "frame/field",
    FrameLimit = "frame/limit",
    CarHeader = "car/header",
    CarVersion = "car/version",
    CarTruncated = "car/truncated",
    CarVarint = "car/varint",
    CarCid = "car/cid",
    CarHash = "car/hash",
    CarLimit = "car/limit",
    CarRoots = "car/roots",
    CarExtra = "car/extra",

    // Commits and signatures
    CommitMissingBlock = "commit/missing-block",
    CommitCbor = "commit/cbor",
    CommitMissing = "commit/missing",
    CommitField = "commit/field",
    CommitVersion = "commit/version",
    CommitDid = "commit/did",
    CommitRev = "commit/rev",
    CommitSignatureLength = "commit/signature-length",
    SignatureWrong = "signature/wrong",
    SignatureNoKey = "signature/no-key",
    SignatureKey = "signature/key",
    SignatureRange = "signature/range",
    SignatureHighS = "signature/high-s",

    // Trees
    TreeCbor = "tree/cbor",
    TreeShape = "tree/shape",
    TreeLink = "tree/link",
    TreePrefix = "tree/prefix",
    TreeEmptyKey = "tree/empty-key",
    TreeOrder = "tree/order",
    TreeLayer = "tree/layer",
    TreeSkippedLayer = "tree/skipped-layer",
    TreeEmptyNode = "tree/empty-node",
    TreeUntrimmedRoot = "tree/untrimmed-root",
    TreeRepeatedNode = "tree/repeated-node",
    TreeMissingNode = "tree/missing-node",
    TreeRebuilt = "tree/rebuilt",
    TreeLimit = "tree/limit",

    // Records
    RecordCbor = "record/cbor",
    RecordShape = "record/shape",
    RecordSize = "record/size",
    RecordPath = "record/path",
    RecordMissing = "record/missing",
    RecordLink = "record/link",
    DataCbor = "data/cbor",
    DataShape = "data/shape",
    DataFloat = "data/float",
    DataInteger = "data/integer",
    DataLink = "data/link",
    DataKey = "data/key",
    DataType = "data/type",
    DataRecordType = "data/record-type",
    DataBlob = "data/blob",

    // Histories of did:plc
    PlcEmpty = "plc/empty",
    PlcJson = "plc/json",
    PlcType = "plc/type",
    PlcField = "plc/field",
    PlcLimit = "plc/limit",
    PlcGenesis = "plc/genesis",
    PlcDid = "plc/did",
    PlcCid = "plc/cid",
    PlcPrev = "plc/prev",
    PlcPrevNullified = "plc/prev-nullified",
    PlcTombstoned = "plc/tombstoned",
    PlcRotationKey = "plc/rotation-key",
    PlcSignatureEncoding = "plc/signature-encoding",
    PlcSignatureLength = "plc/signature-length",
    PlcPriority = "plc/priority",
    PlcWindow = "plc/window",
    PlcCreatedAt = "plc/created-at",
    PlcNullified = "plc/nullified",

    // Labels
    VerifiedNegation = "verified/negation",
    VerifiedExpired = "verified/expired",
    LabelCbor = "label/cbor",
    LabelField = "label/field",
    LabelMissing = "label/missing",
    LabelVersion = "label/version",
    LabelUnsigned = "label/unsigned",
    LabelSignatureLength = "label/signature-length",
    LabelValue = "label/value",
    LabelSource = "label/source",
    LabelEarlierKey = "label/earlier-key",

    // Checkpoints of directories
    CheckpointJson = "checkpoint/json",
    CheckpointField = "checkpoint/field",
    CheckpointLength = "checkpoint/length",
    CheckpointKey = "checkpoint/key",
    CheckpointFuture = "checkpoint/future",
    CheckpointOld = "checkpoint/old",
    CheckpointDid = "checkpoint/did",
    CheckpointPosition = "checkpoint/position",
    CheckpointRoot = "checkpoint/root",
    CheckpointNeighbours = "checkpoint/neighbours",

    // Nostr events
    EventUnreadable = "event/unreadable",
    EventId = "event/id",
    EventIdForm = "event/id-form",
    EventRefused = "event/refused",
    EventUnmatched = "event/unmatched",
    EventUnencodable = "event/unencodable",
    DatabaseNoPayload = "database/no-payload",
    DatabaseNoRow = "database/no-row",
    DatabaseMalformedRow = "database/malformed-row",
    DatabaseOtherEvent = "database/other-event",
    DatabaseIndex = "database/index",
    DatabaseFile = "database/file",
    DatabaseVersion = "database/version",
    DatabaseTables = "database/tables",
    DatabaseCrash = "database/crash",
    DatabaseStalled = "database/stalled",
    ContainerHeader = "container/header",
    ContainerVersion = "container/version",
    ContainerFormat = "container/format",
    ContainerHead = "container/head",
    ContainerChecksum = "container/checksum",
    ContainerLengths = "container/lengths",
    ContainerSalt = "container/salt",
    ContainerOrder = "container/order",
    ContainerTruncated = "container/truncated",
    ContainerIndex = "container/index",
    ContainerTrailing = "container/trailing",
    ContainerLimit = "container/limit",

    // Lines with proofs
    ProofMissing = "proof/missing",
    ProofDiffers = "proof/differs",
    ProofLine = "proof/line",

    // Archives of events
    ArchiveLog = "archive/log",
    ArchiveLogGap = "archive/log-gap",
    ArchiveLogShorter = "archive/log-shorter",
    ArchiveProtocol = "archive/protocol",
    ArchiveLink = "archive/link",
    ArchiveCheckpoint = "archive/checkpoint",
    ArchiveRepeated = "archive/repeated",
    ArchiveFile = "archive/file",
    ArchiveDecodedSize = "archive/decoded-size",
    ArchiveFrameQuota = "archive/frame-quota",
    ArchiveAccount = "archive/account",
    ArchiveKind = "archive/kind",
    ArchiveForm = "archive/form",
    ArchiveErased = "archive/erased",
    ArchiveDerived = "archive/derived",
    ArchiveBase = "archive/base",
    ArchiveOperations = "archive/operations",
    ArchiveRecords = "archive/records",
    ArchiveValue = "archive/value",
    ArchiveHistory = "archive/history",
    ArchiveBlob = "archive/blob",
    ArchiveKey = "archive/key",
    ArchiveKeyNullified = "archive/key-nullified",

    // Hosted Jetstream archives
    JssTruncated = "jss/truncated",
    JssMagic = "jss/magic",
    JssVersion = "jss/version",
    JssUnsealed = "jss/unsealed",
    JssChecksum = "jss/checksum",
    JssOffsets = "jss/offsets",
    JssBlockIndex = "jss/block-index",
    JssCollectionIndex = "jss/collection-index",
    JssCompression = "jss/compression",
    JssNoContentChecksum = "jss/no-content-checksum",
    JssColumns = "jss/columns",
    JssKind = "jss/kind",
    JssText = "jss/text",
    JssSeq = "jss/seq",
    JssLimit = "jss/limit",
    PlanTip = "plan/tip",
    PlanProgress = "plan/progress",
    PlanName = "plan/name",
    PlanChecksum = "plan/checksum",
    PlanOrder = "plan/order",
    PlanRange = "plan/range",
    PlanBlocks = "plan/blocks",
    PlanMode = "plan/mode",
    PlanPages = "plan/pages",
    PlanReplaced = "plan/replaced",
    JetstreamUnsignedRecord = "jetstream/unsigned-record",
    JetstreamAlteredRecord = "jetstream/altered-record",
    JetstreamMissingRecord = "jetstream/missing-record",
    JetstreamNewer = "jetstream/newer",
    JetstreamOlder = "jetstream/older",
}

impl Code<'_> {
    /// Whether it is the code of something verified, even one of a later version.
    pub fn is_verified(&self) -> bool {
        let name = self.as_str();
        name.strip_prefix("verified").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl<'l> From<&'l str> for Code<'l> {
    fn from(name: &'l str) -> Self {
        Text::from(name).into()
    }
}

impl fmt::Display for Code<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de: 'l, 'l> Deserialize<'de> for Code<'l> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_codes_are_those_of_the_page_in_its_order() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/codes.md");
        let page = fs::read_to_string(page).unwrap();
        let (of_data, _) = page.split_once("## Warnings").unwrap();
        let rows = of_data.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next());
        let codes: Vec<&str> = Code::ALL.iter().map(Code::as_str).collect();
        assert_eq!(codes, rows.collect::<Vec<_>>());
    }

    #[test]
    fn a_name_is_its_code_and_one_of_a_later_version_is_kept() {
        for code in Code::ALL {
            assert_eq!(Code::from(code.as_str()), *code);
        }
        assert_eq!(Code::from("event/later"), Code::Other("event/later".into()));
        let verified: Vec<_> = Code::ALL.iter().filter(|code| code.is_verified()).collect();
        assert_eq!(verified.len(), 6, "{verified:?}");
        assert!(Code::from("verified/later").is_verified());
        assert!(!Code::from("verifiedly").is_verified());
    }
}
