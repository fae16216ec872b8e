//! Limits: how long a server with very many or very large things takes until its views are readable, what memory its workers need, and
//! how soon a change is seen. The sizes of the book with `--full`, a tenth of them without.

mod cases;
mod figures;

use std::path::Path;

use anyhow::Result;
use harness::installation::Installation;
use harness::report::Counts;

use figures::Figures;

/// How large.
#[derive(clap::Args, Default)]
pub struct Extent {
    /// The sizes that the book states
    #[arg(long)]
    full: bool,
    /// Only the cases whose names have one of these words
    words: Vec<String>,
}

/// Makes things of a number or size, and measures.
type Case = fn(&Installation, &Path, u32) -> Result<Figures>;

/// What there is much of, how much in the short and in the full form, and what tries it.
const CASES: [(&str, u32, u32, Case); 5] = [
    ("views in a database", 100, 1_000, cases::views),
    ("databases", 20, 50, cases::databases),
    ("columns of a view", 1_000, 1_000, cases::columns),
    ("megabytes of a value", 10, 100, cases::megabytes),
    ("partitions of a table", 200, 2_000, cases::partitions),
];

/// One test per case.
pub fn run(installation: &Installation, folder: &Path, extent: &Extent) -> Result<Counts> {
    let mut counts = Counts::default();
    for (name, short, full, case) in CASES {
        if extent.words.is_empty() || extent.words.iter().any(|word| name.contains(word.as_str())) {
            let number = if extent.full { full } else { short };
            let measured = case(installation, folder, number);
            let name = format!("{number} {name}");
            counts.check(&name, measured.map(|figures| println!("limits: {name}: {figures}")));
        }
    }
    Ok(counts)
}
