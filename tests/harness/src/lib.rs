//! What tests and measurements with a server share.
//!
//! A private copy of a PostgreSQL installation has the extension in it (`installation`); clusters in temporary
//! folders run from it as an unprivileged user (`cluster`, `user`) and are gone afterwards, whatever happens
//! (`throwaway`, `cleanup`), with engines of their own (`engines`). Beside that: writers (`load`), a view against its query (`comparison`), reproducible
//! choices (`dice`), durations (`timing`) and counts of what passed (`report`).

pub mod cleanup;
pub mod cluster;
pub mod comparison;
pub mod dice;
pub mod engines;
pub mod installation;
pub mod load;
pub mod report;
pub mod throwaway;
pub mod timing;
pub mod user;
