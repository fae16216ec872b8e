//! Bytes that compare as values of a type do, under a collation: a label for each different value, which keeps its
//! place among all labels given before and after it.
//!
//! PostgreSQL tells only which of two values is less. So values are kept in order, and a new one gets a label between
//! those of its neighbours. Labels are never taken back, because the dataflow that asked may hold them: they go with it.
//!
//! Comparison functions are code of users and may tell different users different things, so every user as whom values
//! are compared has labels of their own.

mod saved;

use crate::pg::value::{self, type_oid};
use crate::pg::versions::tuple;
use engine::memory::Account;
use pgrx::pg_sys::{self, Oid};
use plan::row::Row;
use plan::types::{Scalar, Type};
use plan::value::Datum;
use rules::sort_labels::{between, Neighbour};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

/// User, type, collation, and for anonymous rows the types and collations of their columns.
type OrderId = (u32, u32, u32, Rc<[u32]>);

/// Labels that one dataflow has been given, of all types and collations.
pub struct SortKeys {
    orders: HashMap<OrderId, Order>,
    /// The types and collations of the columns of anonymous rows, by type modifier.
    rows: HashMap<i32, Rc<[u32]>>,
    account: Account,
    /// Bytes that they took when the dataflow had seen all rows there were.
    settled: Option<usize>,
}

impl Default for SortKeys {
    fn default() -> SortKeys {
        let (orders, rows) = (HashMap::new(), HashMap::new());
        SortKeys { orders, rows, account: Account::open(), settled: None }
    }
}

/// A value of a type, in memory of our own.
enum Kept {
    Value(pg_sys::Datum),
    /// As many words as it takes, for its alignment.
    Image(Box<[u64]>),
}

impl Kept {
    fn datum(&self) -> pg_sys::Datum {
        match self {
            Kept::Value(value) => *value,
            Kept::Image(image) => pg_sys::Datum::from(image.as_ptr()),
        }
    }
}

/// A value that has a label.
struct Labelled {
    value: Kept,
    label: Box<[u8]>,
    /// Its number among all of its order.
    number: u64,
}

impl Labelled {
    fn neighbour(&self) -> Neighbour<'_> {
        Neighbour { label: &self.label, number: self.number }
    }
}

/// Bytes of labels that a dataflow may not need any more.
const SURPLUS: usize = 16 << 20;

/// Values in a leaf before it is split.
const LEAF: usize = 512;

/// The values of a type.
struct Order {
    ty: Type,
    collation: Oid,
    /// How long its values are, as the catalog says it, and whether they are kept by value.
    form: (i16, bool),
    /// Labels given so far.
    count: u64,
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
    },
    /// A type without anything: the bytes of a value are its label.
    Image,
}

impl SortKeys {
    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.account.bytes()
    }

    /// The dataflow has seen all rows there are.
    pub fn settle(&mut self) {
        self.settled.get_or_insert(self.account.bytes());
    }

    /// Whether most of them are of values that came later, so that many values have gone, or many more have come.
    pub fn are_too_many(&self) -> bool {
        self.settled.is_some_and(|settled| self.bytes() > 2 * settled + SURPLUS)
    }

    /// The label of a value that is not NULL, compared as `caller`, who is the current user; `collation` 0 stands for the
    /// type's own. Raises the error that comparing values raises. Needs a transaction.
    pub fn label(&mut self, caller: u32, (ty, collation): (Type, u32), value: &Datum) -> Box<[u8]> {
        let Some(columns) = self.columns_of_row(ty, value) else { return Box::default() };
        let collation = own_collation(ty, collation);
        let _on_their_account = self.account.enter();
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
        let attributes = tuple::columns(descriptor);
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
                Kind::Hashed { hash, equal, values: HashMap::new() }
            } else {
                Kind::Image
            };
            let collation = match collation {
                Oid::INVALID => (*entry).typcollation,
                given => given,
            };
            Order { ty, collation, form: ((*entry).typlen, (*entry).typbyval), count: 0, kind }
        }
    }

    fn label(&mut self, value: &Datum) -> Box<[u8]> {
        // What comparing allocates goes with the transaction's memory.
        let Some(wanted) = value::write(value, self.ty) else { return Box::default() };
        let (collation, form) = (self.collation, self.form);
        // SAFETY: a value of the type.
        let keep = || unsafe { copy_of(wanted, form) };
        match &mut self.kind {
            Kind::Sorted { compare, leaves } => {
                // SAFETY: both are values of the type.
                let order = |other: &Labelled| unsafe {
                    let result =
                        pg_sys::FunctionCall2Coll(*compare, collation, other.value.datum(), wanted);
                    (result.value() as i32).cmp(&0)
                };
                find_or_insert(leaves, &mut self.count, &order, &keep)
            }
            Kind::Hashed { hash, equal, values } => {
                // SAFETY: as above.
                let key = hash.map_or(0, |hash| unsafe {
                    pg_sys::FunctionCall1Coll(hash, collation, wanted).value() as u64
                });
                let bucket = values.entry(key).or_default();
                // SAFETY: as above.
                let is_equal = |other: &&Labelled| unsafe {
                    let result =
                        pg_sys::FunctionCall2Coll(*equal, collation, other.value.datum(), wanted);
                    result.value() != 0
                };
                if let Some(known) = bucket.iter().find(is_equal) {
                    return known.label.clone();
                }
                self.count += 1;
                let label: Box<[u8]> = self.count.to_be_bytes().into();
                bucket.push(Labelled { value: keep(), label: label.clone(), number: self.count });
                label
            }
            Kind::Image => Row::pack([value]).as_bytes().into(),
        }
    }
}

/// PostgreSQL's functions that pgrx does not know.
mod raw {
    #![allow(non_snake_case)]
    use pgrx::pg_sys;
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" {
        pub fn datumGetSize(value: pg_sys::Datum, by_value: bool, length: std::ffi::c_int)
            -> usize;
    }
}

/// A copy of a value of a type of that form.
///
/// # Safety
/// It must be such a value.
unsafe fn copy_of(value: pg_sys::Datum, (length, is_by_value): (i16, bool)) -> Kept {
    if is_by_value {
        return Kept::Value(value);
    }
    // SAFETY: per contract the value is a pointer to that many bytes, and the copy has room for them.
    unsafe {
        let size = raw::datumGetSize(value, is_by_value, i32::from(length));
        let mut image = vec![0_u64; size.div_ceil(size_of::<u64>())].into_boxed_slice();
        let bytes = image.as_mut_ptr().cast::<u8>();
        std::ptr::copy_nonoverlapping(value.cast_mut_ptr::<u8>(), bytes, size);
        Kept::Image(image)
    }
}

/// The label of the value to which `order` compares others; a new one if it is not there.
fn find_or_insert(
    leaves: &mut Vec<Vec<Labelled>>,
    count: &mut u64,
    order: &dyn Fn(&Labelled) -> Ordering,
    keep: &dyn Fn() -> Kept,
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
    let label = between(before.map(Labelled::neighbour), after.map(Labelled::neighbour));
    *count += 1;
    let leaf = &mut leaves[leaf_index];
    leaf.insert(place, Labelled { value: keep(), label: label.clone(), number: *count });
    if leaf.len() > LEAF {
        let upper = leaf.split_off(LEAF / 2);
        leaves.insert(leaf_index + 1, upper);
    }
    label
}
