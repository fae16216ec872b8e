//! What every layer of the engine is made of.
//!
//! The layers stand on one another, and none knows those above it: `core`, then [`crate::layout`] (how rows are
//! represented), [`crate::spill`] (state on disk), [`crate::render`] (plans as dataflows), [`crate::engine`] (threads and
//! commands).
//!
//! Of updates: [`updates`], [`diff`], [`stamp`], [`collection`], [`mod@column`]. Of dataflows: [`config`], [`peers`], [`monitor`] with
//! [`room`], [`report`], [`response`]. Of what the host is to evaluate: [`questions`], [`asker`].

pub(crate) mod asker;
pub(crate) mod collection;
pub mod column;
pub(crate) mod config;
pub(crate) mod diff;
pub(crate) mod monitor;
pub(crate) mod peers;
pub(crate) mod questions;
pub(crate) mod readers;
pub(crate) mod report;
pub(crate) mod response;
pub(crate) mod room;
pub(crate) mod stamp;
pub(crate) mod updates;
