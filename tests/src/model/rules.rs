//! The rules of the protocol. With all of them every property holds; without any one of them some property does not,
//! which `tests` shows rule by rule. So none is there for nothing, and the model would notice if the product lost one.

/// Each rule by the name that the code has for it.
macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident,)*) => {
        #[derive(Clone, Copy, Debug)]
        pub struct Rules {
            $($(#[$doc])* pub $rule: bool,)*
        }

        impl Rules {
            pub const ALL: Rules = Rules { $($rule: true,)* };

            /// All but each one, with its name.
            pub const BUT_ONE: &[(&str, Rules)] =
                &[$((stringify!($rule), Rules { $rule: false, ..Rules::ALL }),)*];
        }
    };
}

rules! {
    /// A session in the middle of its commit is counted, so that readers wait for all there is (`Database::committing`).
    committing,
    /// It is counted until it has noted its commit (`handshake::end_commit`).
    note_commit_first,
    /// A reader looks whether its snapshot sees who changed the views last (`snapshot::shows_changes`).
    shows_changes,
    /// A reader looks for views that are behind under its own snapshot (`snapshot::are_together`).
    are_together,
    /// `Database::applied` is published when the transaction that applies has committed (`Worker::apply`).
    publish_after_commit,
    /// States of views are published before `applied` (`Worker::publish_views`, `Database::publish`).
    publish_views_first,
    /// A view that is attached counts as changed even if it was as it must be (`View::changed`, `progress::write`).
    attach_is_a_change,
    /// All views that are together are written in one transaction (`apply::write_all`).
    one_transaction,
    /// What `eddy.view_states` says is written in the same transaction (`States::record`).
    states_with_views,
    /// Before a snapshot is taken to attach a view, all that was decoded has become visible (`wait_for_decoded`).
    wait_for_decoded,
    /// What that snapshot saw is dropped when it is decoded (`Input::already_read`).
    already_read,
    /// An attached view stays aside until decoding has come to where the WAL ended after the snapshot
    /// (`Attachment::whole_from`).
    whole_from,
    /// A new slot waits for the transactions that are running (`Slot::open`).
    wait_for_running,
    /// So does a new worker for those that had written their commit record before it decodes (`wait_for_committed_to_end`).
    wait_for_committed_to_end,
    /// What a transaction has changed whose commit is not visible is set aside (`Worker::set_invisible_aside`).
    set_invisible_aside,
    /// A view is set aside whose dataflow is still at work (`Why::Computing`).
    set_computing_aside,
    /// A view is set aside on which another session has a lock (`Why::Locked`).
    set_locked_aside,
    /// Of several workers of a database one owns it, the others leave (`Database::claim`, `living_worker`).
    claim,
    /// A view attached anew is compared with its heap, and the difference is written (`StoredRows::changes_to_reach`).
    compare_stored,
    /// Nothing is written into a heap that is not the one known (`Outcome::Foreign`, `check_again`).
    known_file,
    /// Before an assistant writes a view it is on record that it is not at the point of the others (`States::is_apart`).
    is_apart,
    /// What an assistant has changed is noted before its view is with the others again (`apply::note_stored`).
    note_stored,
    /// A view is not written as long as an assistant may that nobody wants any more (`Assistants::may_still_write`).
    may_still_write,
    /// What is written after the next step has been fed is what came before it (`Worker::end_computing`).
    receive_after_write,
    /// And it is published as of its own point (`Finished::position`).
    finished_position,
    /// A view that has been attached again since is none that was through (`Worker::still_present`).
    still_present,
    /// A view that reads another one begins when it is known what the heap of that one holds (`stack::require_readable`).
    readable_beneath,
    /// It begins with what that one has put out and not written, too (`Worker::connect`).
    take_unwritten,
    /// It is at a point of commit order when that one is (`Stack::waits`).
    wait_beneath,
    /// It ends with that one's dataflow (`Stack::take`).
    end_with_beneath,
    /// A reader of a view looks whether its file is the one that the worker knows, and the one that it knew when the view was
    /// proven to be current (`wait::is_readable`, `snapshot::ShownView`): REFRESH stores rows as if they had always been there,
    /// so that a transaction with an older snapshot would see them, at another point than that of its snapshot and of other views.
    file,
}
