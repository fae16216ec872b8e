//! Forms in which state could be stored: bytes per update, time to write and to read, for an arrangement
//! of a graph over integers and one of texts: `cargo run --release -p engine --example spill_layouts`
//!
//! The texts are the package dependencies of a distribution, one `package<TAB>dependency` per line, gzipped,
//! if a file with them is named; otherwise names made up to look like such.

use engine::spill::block::{columns, from_columns, Update};
use plan::row::Row;
use plan::value::Datum;
use std::hint::black_box;
use std::io::Read;
use std::time::{Duration, Instant};

type Updates = [Update<Row, Row, u64, i64>];
type Rows = Vec<Update<Row, Row, u64, i64>>;

/// A form: how updates become bytes, and bytes updates.
struct Layout {
    name: &'static str,
    write: fn(&Updates) -> Vec<u8>,
    read: fn(usize, &[u8]) -> Rows,
}

const LAYOUTS: [Layout; 3] = [
    Layout { name: "plain rows", write: write_plain, read: read_plain },
    Layout { name: "packed rows", write: write_packed, read: read_packed },
    Layout { name: "columns", write: columns, read: |n, b| from_columns(n, b).expect("columns") },
];

fn main() {
    let updates_in_all = 2_000_000;
    let graph = integers(updates_in_all);
    let packages = match std::env::args().nth(1) {
        Some(path) => texts_of(&path),
        None => made_up_texts(updates_in_all / 4),
    };
    for (name, updates) in [("integers", &graph), ("texts", &packages)] {
        let heap = |row: &Row| size_of::<Row>() + row.heap_bytes();
        let bytes: usize = updates.iter().map(|((k, v), _, _)| heap(k) + heap(v) + 16).sum();
        println!(
            "{name}: {} updates, {:.1} bytes each in memory",
            updates.len(),
            per(bytes, updates)
        );
        println!("| layout | block | bytes | LZ4 | write | + LZ4 | read | + LZ4 |");
        println!("|---|---|---|---|---|---|---|---|");
        for block in [1024, 2048, 4096, 8192] {
            for layout in &LAYOUTS {
                measure(layout, block, updates);
            }
        }
    }
}

fn per(bytes: usize, updates: &Updates) -> f64 {
    bytes as f64 / updates.len() as f64
}

/// The least of a few runs, in nanoseconds per update.
fn time<R>(updates: &Updates, mut run: impl FnMut() -> R) -> (f64, R) {
    let mut best = Duration::MAX;
    let mut last = None;
    for _ in 0..3 {
        let start = Instant::now();
        last = Some(black_box(run()));
        best = best.min(start.elapsed());
    }
    (best.as_nanos() as f64 / updates.len() as f64, last.expect("it ran"))
}

fn measure(layout: &Layout, block: usize, updates: &Updates) {
    let blocks = || updates.chunks(block);
    let (write, plain) = time(updates, || blocks().map(layout.write).collect::<Vec<_>>());
    let (compress, packed) = time(updates, || {
        plain.iter().map(|b| lz4_flex::compress_prepend_size(b)).collect::<Vec<_>>()
    });
    let (decompress, _) = time(updates, || {
        packed
            .iter()
            .map(|b| lz4_flex::decompress_size_prepended(b).expect("just compressed").len())
            .sum::<usize>()
    });
    let (read, _) = time(updates, || {
        let sizes = blocks().map(<[_]>::len);
        sizes.zip(&plain).map(|(n, bytes)| (layout.read)(n, bytes).len()).sum::<usize>()
    });
    for (chunk, bytes) in blocks().zip(&plain) {
        assert_eq!((layout.read)(chunk.len(), bytes), chunk, "{} comes back", layout.name);
    }
    let total = |blocks: &[Vec<u8>]| per(blocks.iter().map(Vec::len).sum(), updates);
    println!(
        "| {} | {block} | {:.1} | {:.1} | {write:.0} ns | {:.0} ns | {read:.0} ns | {:.0} ns |",
        layout.name,
        total(&plain),
        total(&packed),
        write + compress,
        read + decompress,
    );
}

/// Rows as they are, every number in full width.
fn write_plain(updates: &Updates) -> Vec<u8> {
    let mut out = Vec::new();
    for ((key, value), time, diff) in updates {
        for row in [key, value] {
            let columns = row.unpack();
            out.push(columns.len() as u8);
            for column in columns {
                match column {
                    Datum::Int8(number) => {
                        out.push(0);
                        out.extend(number.to_le_bytes());
                    }
                    Datum::Text(text) => {
                        out.push(1);
                        out.extend((text.len() as u64).to_le_bytes());
                        out.extend(text.as_bytes());
                    }
                    other => unreachable!("no {other:?} here"),
                }
            }
        }
        out.extend(time.to_le_bytes());
        out.extend(diff.to_le_bytes());
    }
    out
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn take_word(bytes: &mut &[u8]) -> u64 {
    u64::from_le_bytes(take(bytes, 8).try_into().expect("eight bytes"))
}

fn read_plain(count: usize, mut bytes: &[u8]) -> Rows {
    let bytes = &mut bytes;
    let mut updates = Rows::with_capacity(count);
    for _ in 0..count {
        let data = (read_plain_row(bytes), read_plain_row(bytes));
        updates.push((data, take_word(bytes), take_word(bytes) as i64));
    }
    updates
}

fn read_plain_row(bytes: &mut &[u8]) -> Row {
    let column = |bytes: &mut &[u8]| match take(bytes, 1)[0] {
        0 => Datum::Int8(take_word(bytes) as i64),
        _ => {
            let length = take_word(bytes) as usize;
            let text = std::str::from_utf8(take(bytes, length)).expect("a text");
            Datum::Text(text.into())
        }
    };
    let arity = take(bytes, 1)[0];
    let columns: Vec<Datum> = (0..arity).map(|_| column(bytes)).collect();
    Row::pack(&columns)
}

/// Rows as they are in memory, without the unused space.
fn write_packed(updates: &Updates) -> Vec<u8> {
    let mut out = Vec::new();
    for ((key, value), time, diff) in updates {
        for row in [key, value] {
            out.extend((row.as_bytes().len() as u32).to_le_bytes());
            out.extend(row.as_bytes());
        }
        out.extend(time.to_le_bytes());
        out.extend(diff.to_le_bytes());
    }
    out
}

fn read_packed(count: usize, mut bytes: &[u8]) -> Rows {
    let bytes = &mut bytes;
    let mut updates = Rows::with_capacity(count);
    for _ in 0..count {
        let mut row = || {
            let length = u32::from_le_bytes(take(bytes, 4).try_into().expect("four bytes"));
            Row::from_bytes(take(bytes, length as usize))
        };
        let data = (row(), row());
        updates.push((data, take_word(bytes), take_word(bytes) as i64));
    }
    updates
}

/// Edges by their source, a tenth of them with a recent time.
fn integers(count: u64) -> Rows {
    let mut random = Random(1);
    let nodes = count / 5;
    let number = |n: u64| Datum::Int8(n as i64);
    let updates = (0..count).map(|_| {
        let (a, b) = (number(random.below(nodes)), number(random.below(nodes)));
        ((Row::pack([&a]), Row::pack([&a, &b])), random.time(), 1)
    });
    sorted(updates.collect())
}

/// Dependencies by package.
fn texts_of(path: &str) -> Rows {
    let file = std::fs::File::open(path).expect("the file can be opened");
    let mut child = std::process::Command::new("gzip")
        .args(["--decompress", "--stdout"])
        .stdin(file)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("gzip can be started");
    let mut text = String::new();
    let output = child.stdout.as_mut().expect("standard output is piped");
    output.read_to_string(&mut text).expect("the file is text");
    assert!(child.wait().expect("gzip ends").success(), "gzip succeeds");
    let mut random = Random(2);
    let pairs = text.lines().filter_map(|line| line.split_once('\t'));
    sorted(pairs.map(|(package, other)| dependency(package, other, &mut random)).collect())
}

fn made_up_texts(count: u64) -> Rows {
    let mut random = Random(3);
    let name =
        |n: u64| format!("{}{n:x}-{}", ["lib", "python3-", "golang-"][n as usize % 3], n % 7);
    let updates = (0..count).map(|_| {
        let (a, b) = (random.below(count / 5), random.below(count / 50));
        dependency(&name(a), &name(b), &mut random)
    });
    sorted(updates.collect())
}

fn dependency(package: &str, other: &str, random: &mut Random) -> Update<Row, Row, u64, i64> {
    let (package, other) = (Datum::Text(package.into()), Datum::Text(other.into()));
    ((Row::pack([&package]), Row::pack([&package, &other])), random.time(), 1)
}

fn sorted(mut updates: Rows) -> Rows {
    updates.sort();
    updates
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }

    /// Compaction makes all times but the recent ones equal.
    fn time(&mut self) -> u64 {
        match self.below(10) {
            0 => 1_000_000 + self.below(1000),
            _ => 1_000_000,
        }
    }
}
