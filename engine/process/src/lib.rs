//! The engine as a process of its own: what kills it takes nobody with it.
//!
//! The program `pg_eddy_engine` has the engine that otherwise is part of the host ([`engine::Embedded`]), and does what a host tells it over
//! a socket ([`serve()`]). [`Process`] is what the host has of it: an [`engine::Engine`] like any other, but that it may end at any
//! time ([`engine::Response::Ended`]). What they tell each other are [frames](frame) with [messages](message).
//!
//! The program has no connection to a server, and no file but those of its spill directory. Code of users never runs in it: what it
//! cannot evaluate it asks of the host.

pub mod frame;
mod host;
mod lock;
pub mod message;
mod serve;
mod status;

pub use host::Process;
pub use serve::serve;
