//! The memory of a database's worker: what the system says of the process, and what the worker says of itself.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use harness::cluster::wait_for;
use postgres::Client;
use serde_json::{json, Value};

pub const MEBIBYTE: f64 = 1_048_576.0;

/// The engine looks every five seconds whether the process rests and has what it could give back, and does so at the
/// second look. Where it is about to, this is long enough.
const REST: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(300);

/// What a process may get or give back and rest all the same.
const LITTLE: u64 = 1 << 20;

/// In bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Resident and the process's own.
    pub anonymous: u64,
    /// Resident pages of files: the program and its libraries.
    pub file: u64,
    /// Resident pages of shared memory: of the server's buffers those that the process has touched.
    pub shared: u64,
    /// Most that was resident at one time, of all three.
    pub peak: u64,
    /// What the worker's allocator counts.
    pub counted: u64,
    /// What the views say of their state, in sum.
    pub state: u64,
}

impl Memory {
    /// Of the worker of the client's database.
    pub fn read(client: &mut Client) -> Result<Memory> {
        let row = client.query_one(
            "SELECT pid, memory_bytes, (SELECT coalesce(sum(v.state_bytes), 0)::bigint FROM eddy.views v)
             FROM eddy.activity",
            &[],
        )?;
        let status = Status::read(row.get(0))?;
        Ok(Memory {
            anonymous: status.bytes("RssAnon")?,
            file: status.bytes("RssFile")?,
            shared: status.bytes("RssShmem")?,
            peak: status.bytes("VmHWM")?,
            counted: u64::try_from(row.get::<_, i64>(1))?,
            state: u64::try_from(row.get::<_, i64>(2))?,
        })
    }

    /// For the record.
    pub fn describe(&self, base_rows: u64) -> Value {
        json!({
            "anonymous_bytes": self.anonymous, "file_bytes": self.file, "shared_bytes": self.shared,
            "peak_bytes": self.peak, "counted_bytes": self.counted, "state_bytes": self.state,
            "base_rows": base_rows, "bytes_per_base_row": self.per_row(base_rows),
        })
    }

    /// The process's own bytes for each base row.
    pub fn per_row(&self, base_rows: u64) -> f64 {
        self.anonymous as f64 / base_rows as f64
    }
}

/// Waits until the workers of the clients' databases neither take memory nor give any back.
pub fn wait_for_rest<'a>(clients: impl Iterator<Item = &'a mut Client>) -> Result<()> {
    let pid = |client: &mut Client| -> Result<i32> {
        Ok(client.query_one("SELECT pid FROM eddy.activity", &[])?.get(0))
    };
    let workers = clients.map(pid).collect::<Result<Vec<i32>>>()?;
    let look = || -> Result<Vec<u64>> {
        workers.iter().map(|worker| Status::read(*worker)?.bytes("RssAnon")).collect()
    };
    let (mut before, mut since) = (look()?, Instant::now());
    wait_for("the workers' memory to rest", PATIENCE, || {
        let now = look()?;
        if before.iter().zip(&now).any(|(before, now)| before.abs_diff(*now) > LITTLE) {
            (before, since) = (now, Instant::now());
        }
        Ok((since.elapsed() >= REST).then_some(()))
    })
}

/// What Linux tells of a process.
struct Status(String);

impl Status {
    fn read(pid: i32) -> Result<Status> {
        let file = format!("/proc/{pid}/status");
        Ok(Status(fs::read_to_string(&file).with_context(|| file.clone())?))
    }

    fn bytes(&self, name: &str) -> Result<u64> {
        let mut lines = self.0.lines().filter_map(|line| line.split_once(':'));
        let kilobytes = lines
            .find(|(key, _)| *key == name)
            .and_then(|(_, value)| value.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Ok(kilobytes.with_context(|| format!("no {name} of the process"))? << 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_of_all_kinds() {
        let status = Status::read(i32::try_from(std::process::id()).unwrap()).unwrap();
        let [anonymous, file, shared, peak] =
            ["RssAnon", "RssFile", "RssShmem", "VmHWM"].map(|name| status.bytes(name).unwrap());
        assert!(anonymous > 0 && file > 0 && peak > 0);
        // A test has none.
        assert_eq!(shared, 0);
        assert!(status.bytes("RssOther").is_err());
    }
}
