//! What of the benchmarks is run, and how much of it: the options of the command line.

use std::path::PathBuf;

use crate::entry::{Entry, Size};

#[derive(Clone, Debug, clap::Args)]
pub struct Extent {
    /// Benchmarks: E1, E2 (or closed), reach, labels, tc, join3, open, memory, spread, latency, throughput, growth,
    /// ttc, permissions, apply, changes, attach, start, checkpoints, writers, views, peers, or the groups engine and system; all if none is
    /// named. verdicts judges what earlier runs left in the folder
    pub names: Vec<String>,
    /// Small sizes and few rounds: keeps everything alive, judges no times
    #[arg(long)]
    pub quick: bool,
    /// The largest size of each benchmark
    #[arg(long)]
    pub large: bool,
    /// Nodes of the graph (or rows of the smaller table), instead of the benchmark's own
    #[arg(long)]
    pub nodes: Option<u64>,
    /// Edges of the graph (or rows of the larger table)
    #[arg(long)]
    pub edges: Option<u64>,
    /// Swaps per batch; a swap replaces one base row by another at a time of its own
    #[arg(long, value_delimiter = ',', default_value = "1,10,100,1000,10000,100000,1000000")]
    pub batches: Vec<u64>,
    /// Worker threads
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    pub workers: Vec<usize>,
    /// Pairs of measurements, by hand and SQL in turn, for each batch size
    #[arg(long, default_value_t = 5)]
    pub pairs: usize,
    /// Swaps of one measurement, where they fit in `rounds` batches
    #[arg(long, default_value_t = 20_000)]
    pub swaps: u64,
    /// Most batches of one measurement
    #[arg(long, default_value_t = 1000)]
    pub rounds: u64,
    /// Minutes that the pairs of one batch size may take, judged by the one before; else it is left out
    #[arg(long, default_value_t = 10.0)]
    pub longest: f64,
    /// Swaps of each run whose checksums are compared first, on small tables
    #[arg(long, default_value_t = 20_000)]
    pub checked: u64,
    /// Write the checksum of each time to a file per run
    #[arg(long)]
    pub checksums: bool,
    /// Open loop: swaps or transactions per second, ascending
    #[arg(long, value_delimiter = ',')]
    pub rates: Option<Vec<u64>>,
    /// Length of one measurement
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Rows of the largest base table, where there is a server
    #[arg(long)]
    pub rows: Option<u32>,
    /// Growth: sizes of the graphs in edges, ascending; ttc: scale factors
    #[arg(long, value_delimiter = ',')]
    pub sizes: Option<Vec<u32>>,
    /// Views: numbers of views that are compared with none, ascending
    #[arg(long, value_delimiter = ',')]
    pub views: Option<Vec<u32>>,
    /// Folder for JSON lines and plots
    #[arg(long, default_value = "bench-results")]
    pub output: PathBuf,
}

/// Swaps of one measurement in the short mode, where no batch is larger either.
pub const QUICK_SWAPS: u64 = 1000;

impl Extent {
    /// The short mode takes no longer than its number of swaps.
    pub fn batches(&self) -> Vec<u64> {
        let longest = if self.quick { QUICK_SWAPS } else { u64::MAX };
        self.batches.iter().copied().filter(|batch| *batch <= longest).collect()
    }

    pub fn size(&self, entry: &Entry) -> Size {
        let size = match (self.quick, self.large) {
            (true, _) => entry.quick_size,
            (false, true) => entry.sizes[entry.sizes.len() - 1],
            (false, false) => entry.sizes[0],
        };
        Size { nodes: self.nodes.unwrap_or(size.nodes), edges: self.edges.unwrap_or(size.edges) }
    }

    /// Measurements of the large sizes do not take the place of the others.
    pub fn file_of(&self, name: &str) -> String {
        format!("{name}{}", if self.large { "-large" } else { "" })
    }

    /// The short mode's measurements are kept apart: they are not to be judged.
    pub fn folder(&self) -> PathBuf {
        if self.quick {
            self.output.join("quick")
        } else {
            self.output.clone()
        }
    }
}
