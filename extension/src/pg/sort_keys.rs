//! Bytes that compare as values of a type do, under a collation: a label for each different value, which keeps its
//! place among all labels given before and after it.
//!
//! PostgreSQL tells only which of two values is less. So values are kept in order, and a new one gets a label between
//! those of its neighbours. Labels are never taken back, because dataflows may hold them.
//!
//! Comparison functions are code of users and may tell different users different things, so every user as whom values
//! are compared has labels of their own.

use crate::pg::value::{self, type_oid};
use pgrx::pg_sys::{self, Oid};
use planner::row::Row;
use planner::types::{Scalar, Type};
use planner::value::Datum;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

/// User, type, collation, and for anonymous rows the types and collations of their columns.
type OrderKey = (u32, u32, u32, Rc<[u32]>);

/// Labels of all types and collations.
#[derive(Default)]
pub struct SortKeys {
    orders: HashMap<OrderKey, Order>,
    /// The types and collations of the columns of anonymous rows, by type modifier.
    rows: HashMap<i32, Rc<[u32]>>,
}

/// A value that has a label.
struct Labelled {
    value: pg_sys::Datum,
    label: Box<[u8]>,
}

/// Values in a leaf before it is split.
const LEAF: usize = 512;

/// The values of a type.
struct Order {
    ty: Type,
    collation: Oid,
    kind: Kind,
}

enum Kind {
    /// In ascending order, in leaves of which none is empty but the only one.
    Sorted { compare: *mut pg_sys::FmgrInfo, leaves: Vec<Vec<Labelled>> },
    /// A type without order: by hash, if it has one.
    Hashed {
        hash: Option<*mut pg_sys::FmgrInfo>,
        equal: *mut pg_sys::FmgrInfo,
        values: HashMap<u64, Vec<Labelled>>,
        count: u64,
    },
    /// A type without anything: the bytes of a value are its label.
    Image,
}

impl SortKeys {
    /// The label of a value that is not NULL, compared as `caller`, who is the current user; `collation` 0 stands for the
    /// type's own. Raises the error that comparing values raises. Needs a transaction.
    pub fn label(&mut self, caller: u32, (ty, collation): (Type, u32), value: &Datum) -> Box<[u8]> {
        let Some(columns) = self.columns_of_row(ty, value) else { return Box::default() };
        let collation = own_collation(ty, collation);
        let order = self.orders.entry((caller, type_oid(ty), collation, columns));
        order.or_insert_with(|| Order::new(ty, Oid::from(collation))).label(value)
    }

    /// Anonymous rows compare with rows of columns of the same types and collations only. Nothing for other types; `None` for an
    /// array without rows, which is before all others.
    fn columns_of_row(&mut self, ty: Type, value: &Datum) -> Option<Rc<[u32]>> {
        if !matches!(ty.base(), Scalar::Host(host) if host.id == pg_sys::RECORDOID.to_u32()) {
            return Some(Rc::default());
        }
        match value {
            Datum::Bytea(row) => {
                // Behind the length, which is not kept, a row's header has its type modifier.
                let modifier = i32::from_ne_bytes(row.get(..4)?.try_into().ok()?);
                let columns = self.rows.entry(modifier).or_insert_with(|| column_types(modifier));
                Some(Rc::clone(columns))
            }
            Datum::Array(array) => {
                array.elements.iter().find_map(|row| self.columns_of_row(ty, row))
            }
            _ => None,
        }
    }
}

/// The types and collations of the columns of anonymous rows with a type modifier.
fn column_types(modifier: i32) -> Rc<[u32]> {
    // SAFETY: a row of this process has registered the type; its description is copied, and valid until freed.
    unsafe {
        let descriptor = pg_sys::lookup_rowtype_tupdesc_copy(pg_sys::RECORDOID, modifier);
        let count = usize::try_from((*descriptor).natts).unwrap_or(0);
        let attributes = (*descriptor).attrs.as_slice(count);
        let facts = |column: &pg_sys::FormData_pg_attribute| {
            [column.atttypid.to_u32(), column.attcollation.to_u32()]
        };
        let types = attributes.iter().flat_map(facts).collect();
        pg_sys::FreeTupleDesc(descriptor);
        types
    }
}

/// The collation asked for, that which makes the type another one, or 0.
fn own_collation(ty: Type, collation: u32) -> u32 {
    match ty.base() {
        Scalar::Host(host) if collation == 0 => host.collation,
        _ => collation,
    }
}

impl Order {
    fn new(ty: Type, collation: Oid) -> Order {
        let wanted = pg_sys::TYPECACHE_CMP_PROC_FINFO
            | pg_sys::TYPECACHE_EQ_OPR_FINFO
            | pg_sys::TYPECACHE_HASH_PROC_FINFO;
        // SAFETY: entries of the type cache live as long as the process.
        unsafe {
            let entry = pg_sys::lookup_type_cache(Oid::from(type_oid(ty)), wanted as i32);
            // A function that a type lacks must not be called: an operator class may be without the one it should have.
            let has = |function: Oid| function != Oid::INVALID;
            let kind = if has((*entry).cmp_proc) {
                let compare = &raw mut (*entry).cmp_proc_finfo;
                Kind::Sorted { compare, leaves: vec![Vec::new()] }
            } else if has((*entry).eq_opr_finfo.fn_oid) {
                let hash = has((*entry).hash_proc).then_some(&raw mut (*entry).hash_proc_finfo);
                let equal = &raw mut (*entry).eq_opr_finfo;
                Kind::Hashed { hash, equal, values: HashMap::new(), count: 0 }
            } else {
                Kind::Image
            };
            let collation = match collation {
                Oid::INVALID => (*entry).typcollation,
                given => given,
            };
            Order { ty, collation, kind }
        }
    }

    fn label(&mut self, value: &Datum) -> Box<[u8]> {
        // What comparing allocates goes with the transaction's memory.
        let Some(wanted) = value::write(value, self.ty) else { return Box::default() };
        let (ty, collation) = (self.ty, self.collation);
        // SAFETY: the context that is switched to lives as long as the process, and so does the copy.
        let keep = || unsafe {
            let outer = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
            let copy = value::write(value, ty);
            pg_sys::MemoryContextSwitchTo(outer);
            copy.unwrap_or(wanted)
        };
        match &mut self.kind {
            Kind::Sorted { compare, leaves } => {
                // SAFETY: both are values of the type.
                let order = |other: &Labelled| unsafe {
                    let result =
                        pg_sys::FunctionCall2Coll(*compare, collation, other.value, wanted);
                    (result.value() as i32).cmp(&0)
                };
                find_or_insert(leaves, &order, &keep)
            }
            Kind::Hashed { hash, equal, values, count } => {
                // SAFETY: as above.
                let key = hash.map_or(0, |hash| unsafe {
                    pg_sys::FunctionCall1Coll(hash, collation, wanted).value() as u64
                });
                let bucket = values.entry(key).or_default();
                // SAFETY: as above.
                let is_equal = |other: &&Labelled| unsafe {
                    let result = pg_sys::FunctionCall2Coll(*equal, collation, other.value, wanted);
                    result.value() != 0
                };
                if let Some(known) = bucket.iter().find(is_equal) {
                    return known.label.clone();
                }
                *count += 1;
                let label: Box<[u8]> = count.to_be_bytes().into();
                bucket.push(Labelled { value: keep(), label: label.clone() });
                label
            }
            Kind::Image => Row::pack([value]).as_bytes().into(),
        }
    }
}

/// The label of the value to which `order` compares others; a new one if it is not there.
fn find_or_insert(
    leaves: &mut Vec<Vec<Labelled>>,
    order: &dyn Fn(&Labelled) -> Ordering,
    keep: &dyn Fn() -> pg_sys::Datum,
) -> Box<[u8]> {
    let is_not_greater =
        |leaf: &Vec<Labelled>| leaf.first().is_some_and(|first| order(first).is_le());
    let leaf_index = leaves.partition_point(is_not_greater).saturating_sub(1);
    let place = match leaves[leaf_index].binary_search_by(order) {
        Ok(place) => return leaves[leaf_index][place].label.clone(),
        Err(place) => place,
    };
    let before = match place.checked_sub(1) {
        Some(place) => leaves[leaf_index].get(place),
        // The least of all, or the leaf would be the one before.
        None => None,
    };
    let after = leaves[leaf_index]
        .get(place)
        .or_else(|| leaves.get(leaf_index + 1).and_then(|leaf| leaf.first()));
    let label = between(before.map(|b| &*b.label), after.map(|a| &*a.label));
    let leaf = &mut leaves[leaf_index];
    leaf.insert(place, Labelled { value: keep(), label: label.clone() });
    if leaf.len() > LEAF {
        let upper = leaf.split_off(LEAF / 2);
        leaves.insert(leaf_index + 1, upper);
    }
    label
}

/// How far apart labels are that are given one after the other at an end.
const STEP: u64 = 1 << 36;

/// Bytes between those of two labels. Labels do not end in zero, so that there is always room.
fn between(before: Option<&[u8]>, after: Option<&[u8]>) -> Box<[u8]> {
    let at_end = match (before, after) {
        (None, None) => Some(1 << 63),
        (Some(before), None) => leading(before).checked_add(STEP),
        (None, Some(after)) => leading(after).checked_sub(STEP),
        (Some(_), Some(_)) => None,
    };
    if let Some(number) = at_end.filter(|number| *number > 0) {
        let bytes = number.to_be_bytes();
        let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        return bytes[..len].into();
    }
    let before = before.unwrap_or_default();
    let mut after = after;
    let mut label = Vec::new();
    loop {
        let low = before.get(label.len()).map_or(0, |byte| u16::from(*byte));
        let high = match after {
            Some(after) => after.get(label.len()).map_or(0, |byte| u16::from(*byte)),
            None => 256,
        };
        if high > low + 1 {
            label.push((low + (high - low) / 2) as u8);
            return label.into();
        }
        label.push(low as u8);
        if high == low + 1 {
            // Whatever follows is less than `after`.
            after = None;
        }
    }
}

/// The first eight bytes of a label as a number.
fn leading(label: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = label.len().min(8);
    bytes[..len].copy_from_slice(&label[..len]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels for numbers that come in this order.
    fn labels(numbers: impl Iterator<Item = usize>) -> Vec<(usize, Box<[u8]>)> {
        let mut leaves = vec![Vec::new()];
        numbers
            .map(|number| {
                let order = |other: &Labelled| other.value.value().cmp(&number);
                let label = find_or_insert(&mut leaves, &order, &|| pg_sys::Datum::from(number));
                (number, label)
            })
            .collect()
    }

    #[test]
    fn labels_compare_as_values_do() {
        let ascending = labels(0..5000);
        let descending = labels((0..5000).rev());
        let mixed = labels((0..20_000).map(|i| i * 7919 % 5003));
        let narrowing = labels((0..600).map(|i| if i % 2 == 0 { i } else { 2000 - i }));
        for mut labels in [ascending, descending, mixed, narrowing] {
            let longest = labels.iter().map(|(_, label)| label.len()).max();
            assert!(longest < Some(100), "{longest:?}");
            labels.sort();
            labels.dedup();
            assert!(labels.windows(2).all(|pair| pair[0].0 < pair[1].0), "one label for a value");
            assert!(labels.windows(2).all(|pair| pair[0].1 < pair[1].1), "in the order of values");
        }
    }
}
