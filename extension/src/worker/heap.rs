//! What is known of a view's heap while this process does not know where its rows are.

/// What is known of a heap that nobody has looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vouched {
    pub file: u32,
    /// Its rows are as of this position.
    pub position: u64,
    /// How many rows it has.
    pub rows: i64,
    /// Whether it is at the point at which the view is: who reads the view need not wait until it has been looked at.
    pub is_current: bool,
}

/// What is known of the rows in a heap while somebody else has their places.
#[derive(Clone, Copy, Debug)]
pub struct Lent {
    /// The heap's file, if they have been compared.
    pub file: Option<u32>,
    /// How many they were.
    pub rows: usize,
    /// Bytes that their places took.
    pub bytes: usize,
}
