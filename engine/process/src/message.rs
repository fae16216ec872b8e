//! What a host and the program tell each other.

use engine::{
    Config, DataflowId, DataflowStats, Form, Index, OutputForm, Read, Spill, StopReason, Time,
    Updates,
};
use plan::error::DataError;
use plan::host::HostCall;
use plan::row::Row;
use plan::{Diff, SourceId, ViewPlan};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Formatter;
use std::path::PathBuf;

/// What the engine is started with: [`Config`] without what is of the host's own process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    pub workers: usize,
    pub max_recursion: u64,
    pub memory_limit: usize,
    pub spill: Option<Spill>,
    pub output: OutputForm,
    /// Where the engine is one of several over which dataflows are spread.
    pub place: Option<Place>,
}

/// An engine's place among several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Distinguishes these engines from those of other hosts, and of others before.
    pub cluster: u64,
    /// Which of the addresses is that of this engine.
    pub process: usize,
    /// Where each of them listens.
    pub addresses: Vec<String>,
}

impl From<&Config> for Start {
    fn from(config: &Config) -> Start {
        let Config { workers, max_recursion, memory_limit, output, .. } = *config;
        let spill = config.spill.clone();
        Start { workers, max_recursion, memory_limit, spill, output, place: None }
    }
}

/// What a host tells the program: mostly one method of [`engine::Engine`] or [`engine::Checkpoints`] each.
#[derive(Debug, Serialize, Deserialize)]
pub enum Command {
    /// The first one.
    Start(Start),
    CreateReading {
        id: DataflowId,
        plan: ViewPlan,
        form: Form,
        reads: Vec<Read>,
        as_of: Time,
    },
    CreateKept {
        id: DataflowId,
        plan: ViewPlan,
        form: Form,
        /// Where the program finds what it starts with.
        from: Option<PathBuf>,
        as_of: Time,
    },
    Save {
        id: DataflowId,
        path: PathBuf,
    },
    CreateIndex {
        id: DataflowId,
        index: Index,
        reads: Vec<Read>,
        as_of: Time,
    },
    CreateSpilling {
        id: DataflowId,
        plan: ViewPlan,
        as_of: Time,
    },
    SetOwner {
        id: DataflowId,
        owner: u32,
    },
    KeepTimes {
        id: DataflowId,
    },
    Drop {
        id: DataflowId,
    },
    Update {
        id: DataflowId,
        source: SourceId,
        updates: Packed,
    },
    /// Updates of which other engines have their shares.
    UpdateShare {
        id: DataflowId,
        source: SourceId,
        updates: Packed,
        /// The last time of all of them.
        latest: Time,
    },
    Connect {
        beneath: DataflowId,
        above: (DataflowId, SourceId),
        columns: Vec<usize>,
        unfed: Packed,
        /// The last event that the host had polled then: it has put what came later into no `unfed`.
        polled: u64,
    },
    Truncate {
        id: DataflowId,
        source: SourceId,
        time: Time,
    },
    AdvanceDataflow {
        id: DataflowId,
        time: Time,
    },
    Advance {
        time: Time,
    },
    /// The host wants to hear something.
    Ping,
    /// The host has polled the events up to that number.
    Polled {
        number: u64,
    },
    /// Answers to [`Event::Evaluate`], of whose values each is a row of one.
    Answer {
        number: u64,
        answers: Vec<Vec<Result<Row, DataError>>>,
    },
}

/// What the program tells the host: mostly a [`engine::Response`]. Events are numbered from 1 on.
#[derive(Debug, Serialize, Deserialize)]
pub enum Event {
    Deltas {
        dataflow: DataflowId,
        oks: Packed,
        errs: Vec<(DataError, Time, Diff)>,
        times: Vec<Time>,
    },
    Frontier {
        dataflow: DataflowId,
        time: Time,
        /// How the dataflow is doing then.
        stats: DataflowStats,
    },
    Stopped {
        dataflow: DataflowId,
        reason: StopReason,
    },
    Saved {
        dataflow: DataflowId,
        outcome: Result<u64, String>,
    },
    Evaluate {
        number: u64,
        dataflow: DataflowId,
        questions: Vec<(HostCall, Vec<Row>)>,
    },
    Status(Status),
    /// The program leaves the host, and why.
    Leaves {
        reason: String,
    },
}

/// How the engine is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Commands it has carried out since its start.
    pub handled: u64,
    /// Bytes it has allocated.
    pub allocated: usize,
    pub is_memory_short: bool,
    /// While memory is short, the dataflows that have no room for more.
    pub crowded: Vec<DataflowId>,
    /// The figures that are new, and the rows of those that are indexes.
    pub stats: Vec<(DataflowId, DataflowStats, usize)>,
}

/// Updates of rows, one after the other as they are in memory: the time, the diff, the number of bytes, the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed(Vec<u8>);

type Update = (Row, Time, Diff);

/// Bytes of a number in it.
const NUMBER: usize = size_of::<u64>();

impl Packed {
    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    pub fn pack(updates: &[Update]) -> Packed {
        let bytes = updates.iter().map(|(row, ..)| 3 * NUMBER + row.as_bytes().len()).sum();
        let mut packed = Vec::with_capacity(bytes);
        for (row, time, diff) in updates {
            packed.extend_from_slice(&time.to_le_bytes());
            packed.extend_from_slice(&diff.to_le_bytes());
            packed.extend_from_slice(&(row.as_bytes().len() as u64).to_le_bytes());
            packed.extend_from_slice(row.as_bytes());
        }
        Packed(packed)
    }

    pub fn unpack(&self) -> Updates<Row> {
        let mut rest = &self.0[..];
        let mut updates = Vec::new();
        while let Some((update, others)) = split(rest) {
            updates.push(update);
            rest = others;
        }
        updates
    }
}

/// The first update, and the bytes of the others.
fn split(bytes: &[u8]) -> Option<(Update, &[u8])> {
    let (time, rest) = bytes.split_first_chunk::<NUMBER>()?;
    let (diff, rest) = rest.split_first_chunk::<NUMBER>()?;
    let (length, rest) = rest.split_first_chunk::<NUMBER>()?;
    let (row, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let update = (Row::from_bytes(row), u64::from_le_bytes(*time), i64::from_le_bytes(*diff));
    Some((update, rest))
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Packed, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Packed;
            fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("bytes")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Packed, E> {
                Ok(Packed(bytes.to_vec()))
            }
            fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Packed, E> {
                Ok(Packed(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}
