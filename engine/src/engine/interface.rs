//! What a host has of an engine, wherever its dataflows run.

use super::Read;
use crate::core::response::{DataflowStats, Response};
use crate::core::updates::{DataflowId, Time, Updates};
use crate::render::{Form, Index};
use plan::row::Row;
use plan::{SourceId, ViewPlan};
use std::path::Path;
use std::time::Duration;

/// A running engine: a dataflow for each view, which it is fed, and polled for. Dropping it stops all of them.
pub trait Engine {
    /// Installs a dataflow whose inputs are empty before `as_of`. Updates with earlier times count as of it. The form fits the plan, and some
    /// joins read indexes, each made for such a source, such columns of it and that form. What the indexes hold counts from their own
    /// start on, also before `as_of`. Joins that read indexes read nothing that is fed to the source. An index must be fed what happens
    /// before a time before this dataflow is told that nothing more does. The plan must be one that the workers can compute
    /// ([`crate::as_computed`]).
    ///
    /// One that was to read an index which has been stopped is stopped at once.
    ///
    /// # Panics
    /// Where an index is not such a one.
    fn create_reading(
        &mut self,
        id: DataflowId,
        plan: (&ViewPlan, Form),
        reads: &[Read],
        as_of: Time,
    );

    /// Installs an index, which is empty before `as_of`, and is fed as its only source is, or as the plan is that makes its rows,
    /// some joins of which read other indexes. It has no output, only a frontier. When it is dropped, it lives on until the last
    /// dataflow that reads it is dropped, too; when it is stopped, so are those, and for the same reason.
    ///
    /// # Panics
    /// As [`Engine::create_reading`].
    fn create_index(&mut self, id: DataflowId, index: &Index, reads: &[Read], as_of: Time);

    /// As [`Engine::create_reading`], but it reads no index, and its state goes to disk while memory is short. It is slower,
    /// also while it is not. Without [`crate::Config::spill`], or where recursion is nested deeper than two, it is
    /// like any other.
    fn create_spilling_dataflow(&mut self, id: DataflowId, plan: &ViewPlan, as_of: Time);

    /// Says who answers for the memory that a dataflow takes: who has little is not stopped for those who have much.
    /// Nobody in particular until then.
    fn set_owner(&mut self, id: DataflowId, owner: u32);

    /// Lets what a dataflow puts out keep the times of the input updates that caused it, where that of others is net
    /// ([`crate::OutputForm::Net`]). To be said before it is fed; frontiers come as for the others.
    fn keep_times(&mut self, id: DataflowId);

    /// Stops a dataflow, if there is one of that name; its threads give its state back as soon as they notice.
    fn drop_dataflow(&mut self, id: DataflowId);

    /// Feeds updates of one source. Times must not be before the last `advance`. Unknown or stopped
    /// dataflows are ignored.
    fn update(&mut self, id: DataflowId, source: SourceId, updates: Updates<Row>);

    /// Feeds what one dataflow puts out from now on to a source of another one that was told of no time yet. Of what it has put
    /// out before that was not polled is fed, too, and of what was polled `unfed`. The one beneath must be fed what happens
    /// before a time before the one above is told that nothing more does.
    fn connect(
        &mut self,
        beneath: DataflowId,
        above: (DataflowId, SourceId),
        columns: Vec<usize>,
        unfed: &Updates<Row>,
    );

    /// Whether memory is short, so that what is on its way should be little.
    fn is_memory_short(&self) -> bool;

    /// Waits, if memory is short, until a dataflow has taken most of what it was fed, at most for `timeout`;
    /// answers whether it has. Whoever feeds more than fits into memory asks for it in between.
    fn wait_for_room(&self, id: DataflowId, timeout: Duration) -> bool;

    /// Retracts, at `time`, all rows that `source` holds before `time` (TRUNCATE). Updates at `time`
    /// fed afterwards are not retracted; updates at `time` fed before are. Truncations of one source
    /// must be fed in the order of their times.
    fn truncate(&mut self, id: DataflowId, source: SourceId, time: Time);

    /// Promises that no further update of this dataflow has a time before `time`.
    fn advance_dataflow(&mut self, id: DataflowId, time: Time);

    /// Promises that no further update has a time before `time`, for any dataflow.
    fn advance(&mut self, time: Time);

    /// Lets the engine begin with what it was told, which it does by itself at the next poll at the latest.
    fn flush(&mut self) {}

    /// What has happened since the last poll; never blocks.
    fn poll(&mut self) -> Vec<Response>;

    /// Latest known figures of a dataflow.
    fn stats(&self, id: DataflowId) -> DataflowStats;

    /// Bytes that this process has allocated, and that of the engine if it is another one.
    fn allocated(&self) -> usize;

    /// What it can do, if any, for dataflows whose state is to survive it.
    fn checkpoints(&mut self) -> Option<&mut dyn Checkpoints> {
        None
    }

    /// Rows that an index has, those included that are still to be merged with their retractions. 0 if it is none.
    fn rows_of_index(&self, id: DataflowId) -> usize;
}

/// Saves dataflows, and starts others with what was saved.
pub trait Checkpoints {
    /// As [`Engine::create_reading`], but it reads no index, and can be saved. With the path of what was saved of another one of the
    /// same plan it starts with the state that that one had, and puts out nothing of it again: all the other one was fed counts as
    /// fed. If that cannot be had it is stopped ([`crate::StopReason::NotRestored`]).
    fn create_kept(
        &mut self,
        id: DataflowId,
        plan: (&ViewPlan, Form),
        from: Option<&Path>,
        as_of: Time,
    );

    /// Writes the state of a dataflow that has put out all that it was fed to a file for each thread, named by the path and the
    /// thread's number, on disk when [`Response::Saved`] comes. It goes on meanwhile; that is as it was when it was told to.
    fn save(&mut self, id: DataflowId, path: &Path);
}
