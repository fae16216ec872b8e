//! The loop of one worker thread: take commands, step the dataflows, park when there is nothing to do.

use crate::diff::take_overflow;
use crate::evaluation;
use crate::input::Feed;
use crate::monitor::{Dataflow, Guard, Shared};
use crate::output::Report;
use crate::render::{render_view, StateMeter};
use crate::{DataflowId, Time, Updates};
use planner::plan::{SourceId, ViewPlan};
use planner::row::Row;
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::Arc;
use std::time::Instant;
use timely::communication::allocator::ProcessBuilder;
use timely::communication::Allocator;
use timely::worker::Worker;

/// What the host asks a worker to do. All workers get the same commands in the same order, except
/// that each gets only its share of the updates.
pub(crate) enum Command {
    Create {
        dataflow: Arc<Dataflow>,
        plan: Arc<ViewPlan>,
        as_of: Time,
    },
    Drop {
        id: DataflowId,
    },
    Update {
        id: DataflowId,
        source: SourceId,
        updates: Updates<Row>,
    },
    Truncate {
        id: DataflowId,
        source: SourceId,
        time: Time,
    },
    /// Only the dataflows that got updates are told; the others have nothing to do.
    Advance {
        ids: Arc<[DataflowId]>,
        time: Time,
    },
}

/// A dataflow as one worker knows it.
struct Installed {
    /// Timely's number of it.
    index: usize,
    inputs: Vec<Box<dyn Feed>>,
    meter: StateMeter,
    dataflow: Arc<Dataflow>,
    /// Whether figures may have changed since they were published.
    touched: bool,
}

/// Runs a worker until the engine is shut down. A panic becomes a report.
pub(crate) fn run(
    builder: ProcessBuilder,
    commands: Receiver<Command>,
    shared: Arc<Shared>,
    thread_start: Arc<dyn Fn() + Send + Sync>,
) {
    let result = catch_unwind(AssertUnwindSafe(|| {
        thread_start();
        evaluation::start(Arc::clone(&shared));
        let allocator = Allocator::Process(builder.build());
        // Timely parks only if it has a timer.
        let timer = Some(Instant::now());
        let worker = Worker::new(timely::WorkerConfig::default(), allocator, timer);
        let (shared, installed) = (Arc::clone(&shared), BTreeMap::new());
        WorkerLoop { worker, commands, shared, installed, taken: 0 }.run();
    }));
    if let Err(payload) = result {
        shared.queued.close();
        shared.report(Report::Panicked { message: panic_message(payload.as_ref()) });
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("worker thread panicked").to_owned()
}

struct WorkerLoop {
    worker: Worker,
    commands: Receiver<Command>,
    shared: Arc<Shared>,
    installed: BTreeMap<DataflowId, Installed>,
    /// Updates taken since the last step.
    taken: usize,
}

impl WorkerLoop {
    fn run(mut self) {
        while !self.shared.is_shutdown() {
            if !self.take_commands() {
                return;
            }
            self.remove_stopped();
            self.worker.step_or_park(None);
            self.shared.queued.subtract(std::mem::take(&mut self.taken));
            if take_overflow() {
                self.shared.stop_overflowed();
            }
            self.publish_state();
        }
    }

    /// Carries out all waiting commands; false when the host is gone.
    fn take_commands(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(command) => self.execute(command),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Create { dataflow, plan, as_of } => self.create(dataflow, &plan, as_of),
            Command::Drop { id } => self.remove(id),
            Command::Update { id, source, updates } => {
                self.taken += updates.len();
                if let Some(installed) = self.installed.get_mut(&id) {
                    installed.dataflow.add_work(updates.len());
                    installed.inputs[source.0].update(updates);
                }
                self.shared.check_memory();
            }
            Command::Truncate { id, source, time } => {
                if let Some(installed) = self.installed.get_mut(&id) {
                    installed.inputs[source.0].truncate(time);
                }
            }
            Command::Advance { ids, time } => {
                for id in ids.iter() {
                    if let Some(installed) = self.installed.get_mut(id) {
                        installed.inputs.iter_mut().for_each(|input| input.advance(time));
                        installed.touched = true;
                    }
                }
            }
        }
    }

    fn create(&mut self, dataflow: Arc<Dataflow>, plan: &ViewPlan, as_of: Time) {
        evaluation::forget();
        let index = self.worker.next_dataflow_index();
        let guard = Guard::new(Arc::clone(&dataflow), Arc::clone(&self.shared));
        let (inputs, meter) = render_view(&mut self.worker, plan, as_of, guard);
        let id = dataflow.id;
        let installed = Installed { index, inputs, meter, dataflow, touched: true };
        self.installed.insert(id, installed);
    }

    fn remove(&mut self, id: DataflowId) {
        if let Some(installed) = self.installed.remove(&id) {
            self.worker.drop_dataflow(installed.index);
            installed.dataflow.set_removed();
        }
    }

    fn remove_stopped(&mut self) {
        let stopped: Vec<DataflowId> = self
            .installed
            .iter()
            .filter(|(_, installed)| installed.dataflow.is_stopped())
            .map(|(id, _)| *id)
            .collect();
        stopped.into_iter().for_each(|id| self.remove(id));
    }

    /// Publishes the figures of dataflows that have just caught up.
    fn publish_state(&mut self) {
        let worker = self.worker.index();
        for installed in self.installed.values_mut() {
            if installed.touched && installed.dataflow.is_caught_up(worker) {
                installed.touched = false;
                installed.dataflow.set_state_bytes(worker, installed.meter.bytes());
            }
        }
    }
}
