//! How large is an event, by the thresholds that published comparisons use?

use super::EventShape;

/// A class of events by the estimated length of their JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SizeClass {
    /// Up to 500 bytes.
    Tiny,
    /// Up to 2,000.
    Small,
    /// Up to 10,000.
    Medium,
    /// Up to 100,000.
    Large,
    /// More.
    Huge,
}

impl SizeClass {
    /// All, the smallest first.
    pub const ALL: [Self; 5] = [Self::Tiny, Self::Small, Self::Medium, Self::Large, Self::Huge];

    /// The class of an event.
    pub fn of(event: &impl EventShape) -> Self {
        match event.estimated_bytes() {
            0..=500 => Self::Tiny,
            501..=2_000 => Self::Small,
            2_001..=10_000 => Self::Medium,
            10_001..=100_000 => Self::Large,
            100_001.. => Self::Huge,
        }
    }

    /// The name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
            Self::Huge => "huge",
        }
    }
}

/// A class of events by how many tags they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TagClass {
    /// None.
    None,
    /// Up to 5.
    Few,
    /// Up to 20.
    Moderate,
    /// Up to 100.
    Many,
    /// More.
    Massive,
}

impl TagClass {
    /// All, that without tags first.
    pub const ALL: [Self; 5] = [Self::None, Self::Few, Self::Moderate, Self::Many, Self::Massive];

    /// The class of an event.
    pub fn of(event: &impl EventShape) -> Self {
        match event.tags() {
            0 => Self::None,
            1..=5 => Self::Few,
            6..=20 => Self::Moderate,
            21..=100 => Self::Many,
            101.. => Self::Massive,
        }
    }

    /// The name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Few => "few",
            Self::Moderate => "moderate",
            Self::Many => "many",
            Self::Massive => "massive",
        }
    }
}
