//! What the worker says of itself (`eddy.activity`).

use std::time::Duration;

use anyhow::Result;
use postgres::Client;

/// Counters since the worker started, or between two moments.
#[derive(Clone, Copy, Debug)]
pub struct Activity {
    pub steps: i64,
    pub decode: Duration,
    pub attach: Duration,
    pub engine: Duration,
    pub apply: Duration,
}

impl Activity {
    pub fn read(client: &mut Client) -> Result<Activity> {
        let row = client.query_one(
            "SELECT steps, decode_ms, attach_ms, engine_ms, apply_ms FROM eddy.activity",
            &[],
        )?;
        let time = |index: usize| Duration::from_secs_f64(row.get::<_, f64>(index) / 1e3);
        let [decode, attach, engine, apply] = [1, 2, 3, 4].map(time);
        Ok(Activity { steps: row.get(0), decode, attach, engine, apply })
    }

    /// What came after an earlier reading.
    pub fn since(&self, before: &Activity) -> Activity {
        Activity {
            steps: self.steps - before.steps,
            decode: self.decode.saturating_sub(before.decode),
            attach: self.attach.saturating_sub(before.attach),
            engine: self.engine.saturating_sub(before.engine),
            apply: self.apply.saturating_sub(before.apply),
        }
    }

    /// Time at work.
    pub fn busy(&self) -> Duration {
        self.decode + self.attach + self.engine + self.apply
    }
}
