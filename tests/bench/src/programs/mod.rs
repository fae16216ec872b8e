//! The workloads, one file each.

mod closure;
mod degrees;
mod distances;
mod join3;
mod labels;
mod reach;

pub use closure::Closure;
pub use degrees::Degrees;
pub use distances::Distances;
pub use join3::Join3;
pub use labels::Labels;
pub use reach::Reach;
