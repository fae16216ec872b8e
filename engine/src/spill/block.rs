//! A block: a run of sorted updates, by column, compressed.

use crate::core::column::Column;

/// An update as differential dataflow sorts it.
pub type Update<K, V, T, R> = ((K, V), T, R);

/// The block of some updates.
pub fn encode<K: Column, V: Column, T: Column, R: Column>(
    updates: &[Update<K, V, T, R>],
) -> Vec<u8> {
    lz4_flex::compress_prepend_size(&columns(updates))
}

/// The updates by column, not compressed.
pub fn columns<K: Column, V: Column, T: Column, R: Column>(
    updates: &[Update<K, V, T, R>],
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(updates) / 4);
    K::write(updates.iter().map(|((key, _), _, _)| key), &mut bytes);
    V::write(updates.iter().map(|((_, value), _, _)| value), &mut bytes);
    T::write(updates.iter().map(|(_, time, _)| time), &mut bytes);
    R::write(updates.iter().map(|(_, _, diff)| diff), &mut bytes);
    bytes
}

/// The `count` updates of a block; `None` if the bytes are not those of a block.
pub fn decode<K: Column, V: Column, T: Column, R: Column>(
    count: usize,
    block: &[u8],
) -> Option<Vec<Update<K, V, T, R>>> {
    from_columns(count, &lz4_flex::decompress_size_prepended(block).ok()?)
}

/// The `count` updates of what [`columns`] returned.
pub fn from_columns<K: Column, V: Column, T: Column, R: Column>(
    count: usize,
    mut bytes: &[u8],
) -> Option<Vec<Update<K, V, T, R>>> {
    let keys = K::read(count, &mut bytes)?.into_iter();
    let values = V::read(count, &mut bytes)?.into_iter();
    let times = T::read(count, &mut bytes)?.into_iter();
    let diffs = R::read(count, &mut bytes)?.into_iter();
    Some(
        keys.zip(values)
            .zip(times)
            .zip(diffs)
            .map(|((data, time), diff)| (data, time, diff))
            .collect(),
    )
}
