//! What has been saved of a database's views: a file that is replaced as a whole, and those that it names.

use crate::pg::ids::ViewId;
use crate::pg::markers;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The form of the file.
const FORM: u32 = 1;

/// Workers that may end while they go on with what was saved before it is not tried any more.
const MOST_ATTEMPTS: usize = 2;

/// What has been saved, all of it as of one point of commit order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    form: u32,
    /// The number of this very file in its file system: a copy of the data directory has another one, and no slot.
    file: u64,
    /// By which the files of this checkpoint are named.
    pub number: u64,
    /// What was committed before this position is in it.
    pub position: u64,
    /// How far the heaps were, as it is on record.
    pub applied: u64,
    pub views: Vec<SavedView>,
}

/// What has been saved of a view.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedView {
    pub relation: u32,
    /// The file of its heap, and how many rows it had.
    pub file: u32,
    pub rows: i64,
    /// Whether its dataflow holds sort keys.
    pub has_keys: bool,
    /// Stands for all that its dataflow was made from.
    pub made_from: String,
}

/// The folder of a database's checkpoints.
pub struct Folder(PathBuf);

impl Folder {
    pub fn of(database: u32) -> Folder {
        Folder(markers::folder().join("checkpoints").join(database.to_string()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    fn manifest(&self) -> PathBuf {
        self.0.join("manifest")
    }

    /// Has a line for each attempt to go on with what is there.
    fn attempts(&self) -> PathBuf {
        self.0.join("attempts")
    }

    /// Where the state of a view is; each thread has a file beside it.
    pub fn state(&self, number: u64, view: ViewId) -> PathBuf {
        self.0.join(format!("{number}.{}", view.to_u32()))
    }

    /// Where the sort keys are that it holds.
    pub fn keys(&self, number: u64, view: ViewId) -> PathBuf {
        self.0.join(format!("{number}.{}.keys", view.to_u32()))
    }

    /// Makes it if it is not there.
    pub fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)
    }

    /// What has been saved last, if it is of this very data directory and was not tried too often.
    pub fn load(&self) -> Result<Manifest, &'static str> {
        let bytes = fs::read(self.manifest()).map_err(|_| "there is none")?;
        let manifest: Option<Manifest> = serde_json::from_slice(&bytes).ok();
        let manifest = manifest.filter(|manifest| manifest.form == FORM).ok_or("it is damaged")?;
        let file = fs::metadata(self.manifest()).map_err(|_| "there is none")?.ino();
        if manifest.file != file {
            return Err("it is a copy");
        }
        let attempts = fs::read(self.attempts()).map_or(0, |attempts| attempts.len());
        match attempts < MOST_ATTEMPTS {
            true => Ok(manifest),
            false => Err("workers ended when they did"),
        }
    }

    /// From now on a worker goes on with what was saved: if that ends it, the next ones shall not try for ever.
    pub fn note_attempt(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.create(true).append(true).mode(0o600).open(self.attempts())?;
        file.write_all(b"\n")?;
        file.sync_all()
    }

    /// It has not ended it.
    pub fn forget_attempts(&self) {
        ignore_missing(fs::remove_file(self.attempts()), &self.attempts());
    }

    /// Replaces the manifest, whose files are on disk, and removes those of others.
    pub fn store(&self, manifest: &mut Manifest) -> io::Result<()> {
        let new = self.0.join("manifest.new");
        let mut options = OpenOptions::new();
        let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(&new)?;
        (manifest.form, manifest.file) = (FORM, file.metadata()?.ino());
        serde_json::to_writer(&mut file, manifest).map_err(io::Error::other)?;
        file.sync_all()?;
        fs::rename(&new, self.manifest())?;
        self.sync()?;
        self.forget_attempts();
        self.remove_others(manifest.number);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    /// Removes the files of all checkpoints but one.
    fn remove_others(&self, number: u64) {
        self.remove_files(|of, _| of != number);
    }

    /// Removes what was written of a view that could not be saved.
    pub fn remove_state(&self, number: u64, view: u32) {
        self.remove_files(|of, state| of == number && state == u64::from(view));
    }

    /// Removes the files of a checkpoint's number and a view that are to go.
    fn remove_files(&self, is_to_go: impl Fn(u64, u64) -> bool) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let numbers = name.to_str().map(|name| name.split('.').map_while(|n| n.parse().ok()));
            let numbers: Vec<u64> = numbers.into_iter().flatten().collect();
            if numbers.len() >= 2 && is_to_go(numbers[0], numbers[1]) {
                ignore_missing(fs::remove_file(entry.path()), &entry.path());
            }
        }
    }

    /// Removes all of it.
    pub fn remove(&self) {
        ignore_missing(fs::remove_dir_all(&self.0), &self.0);
        // It stays while other databases have some.
        let _ = self.0.parent().map(fs::remove_dir);
    }
}

fn ignore_missing(result: io::Result<()>, path: &Path) {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            pgrx::log!("pg_eddy: could not remove \"{}\": {error}", path.display());
        }
        _ => {}
    }
}

impl Manifest {
    pub fn new(number: u64, position: u64, applied: u64) -> Manifest {
        Manifest { form: FORM, file: 0, number, position, applied, views: Vec::new() }
    }
}
