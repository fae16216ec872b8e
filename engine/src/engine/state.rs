//! State that outlives a dataflow: which one it is, and where its threads have it.

use crate::checkpoint::Header;
use crate::render::Form;
use plan::ViewPlan;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the threads of a dataflow that can be saved know of that.
#[derive(Clone)]
pub(super) struct State {
    /// Stands for what is rendered, and how.
    plan: Arc<[u8]>,
    /// Where another dataflow's state is, to go on with.
    from: Option<PathBuf>,
}

impl State {
    /// That of a plan's dataflow, which may go on with what was saved under a path.
    pub(super) fn of((plan, form): (&ViewPlan, Form), from: Option<&Path>) -> State {
        let plan = bincode::serialize(&(plan, form)).expect("a plan can be serialized");
        State { plan: plan.into(), from: from.map(Path::to_owned) }
    }

    /// What a thread writes in front of its share.
    pub(super) fn header(&self, worker: usize, workers: usize) -> Header {
        Header::new(&self.plan, worker, workers)
    }

    /// Where the share of a thread is that it begins with.
    pub(super) fn origin(&self, worker: usize) -> Option<PathBuf> {
        self.from.as_deref().map(|path| path_of(path, worker))
    }
}

/// The file of a thread under a path.
pub(super) fn path_of(path: &Path, worker: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{worker}"));
    name.into()
}
