//! Rules by which the extension decides, and forms in which it writes, as far as they need no server.
//!
//! The extension's library only links within a server, so its own tests cannot run. What knows nothing of PostgreSQL is
//! here, with its tests.

pub mod budget;
pub mod codec;
pub mod pace;
pub mod places;
pub mod progress;
pub mod row_hash;
pub mod row_map;
pub mod security_label;
pub mod sort_labels;
pub mod versions;
pub mod view_settings;
