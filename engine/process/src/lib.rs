//! The engine as a process of its own: what kills it takes nobody with it.
//!
//! The program `pg_eddy_engine` has the engine that otherwise is part of the host ([`engine::Embedded`]), and does what a host tells it over
//! a socket ([`serve()`]). [`Remote`] is what the host has of it: an [`engine::Engine`] like any other, but that it may end at any
//! time ([`engine::Response::Ended`]). What they tell each other are [frames](frame) with [messages](message).
//!
//! It can be one of several, on as many machines, over which each dataflow is spread: then it [listens](listen()) for hosts and for the
//! other engines, and [`Cluster`] is what a host has of all of them. Their threads are the workers of one timely computation for each
//! dataflow, which exchange rows by timely's own channels.
//!
//! The program has no connection to a server, and no file but those of its spill directory. Code of users never runs in it: what it
//! cannot evaluate it asks of the host.

mod child;
mod cluster;
mod dial;
pub mod frame;
mod listen;
mod lock;
mod meeting;
pub mod message;
mod outbox;
mod remote;
mod secret;
mod serve;
mod status;
mod watch;

pub use cluster::Cluster;
pub use listen::{listen, Listening};
pub use remote::Remote;
pub use secret::Secret;
pub use serve::serve;
