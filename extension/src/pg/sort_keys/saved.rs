//! Sort keys that outlive the process: the values, in their order, with the labels that a dataflow holds for them. Types, users and
//! collations go by their numbers, and values are as PostgreSQL has them in memory: who reads it must be the same release of the
//! same server.

use super::{Kept, Kind, Labelled, Order, SortKeys, LEAF};
use crate::pg::xact;
use pgrx::pg_sys::{self, Oid};
use plan::types::Type;
use rules::codec::{Decoder, Encoder};
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;

/// More bytes than that are not saved: the worker has other things to do.
const MOST: usize = 64 << 20;

const SORTED: u64 = 0;
const HASHED: u64 = 1;
const IMAGE: u64 = 2;

impl SortKeys {
    /// Whether they mean the same to another process, and are not too many. What the columns of anonymous rows are goes by numbers that
    /// each process gives.
    pub fn can_be_saved(&self) -> bool {
        self.rows.is_empty() && self.bytes() <= MOST
    }

    /// Writes them to a new file, which is on disk then.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let mut file = Encoder::create(path.to_owned())?;
        file.number(self.orders.len() as u64)?;
        for ((caller, _, collation, _), order) in &self.orders {
            file.number(u64::from(*caller))?;
            file.bytes(&serde_json::to_vec(&order.ty)?)?;
            file.number(u64::from(*collation))?;
            order.save(&mut file)?;
        }
        file.finish()?;
        File::open(path)?.sync_all()
    }

    /// Those of a file. Needs a transaction, as values may be hashed.
    pub fn restore(path: &Path) -> Result<SortKeys, String> {
        let read = || -> io::Result<SortKeys> {
            let mut file = Decoder::open(path.to_owned())?;
            let mut keys = SortKeys::default();
            let on_their_account = keys.account.enter();
            for _ in 0..file.number()? {
                let caller = file.number()? as u32;
                let ty: Type = serde_json::from_slice(&file.bytes()?)?;
                let collation = file.number()? as u32;
                let id = (caller, super::type_oid(ty), collation, Rc::default());
                keys.orders.insert(id, Order::restore(&mut file, ty, collation)?);
            }
            file.finish()?;
            drop(on_their_account);
            Ok(keys)
        };
        match xact::in_subtransaction(read) {
            Ok(read) => read.map_err(|error| error.to_string()),
            Err(caught) => Err(caught.message),
        }
    }
}

impl Order {
    fn save(&self, file: &mut Encoder) -> io::Result<()> {
        let (kind, values): (u64, Vec<&Labelled>) = match &self.kind {
            Kind::Sorted { leaves, .. } => (SORTED, leaves.iter().flatten().collect()),
            Kind::Hashed { values, .. } => (HASHED, values.values().flatten().collect()),
            Kind::Image => (IMAGE, Vec::new()),
        };
        file.number(kind)?;
        file.number(self.count)?;
        file.number(values.len() as u64)?;
        values.into_iter().try_for_each(|value| value.save(file))
    }

    fn restore(file: &mut Decoder, ty: Type, collation: u32) -> io::Result<Order> {
        let mut order = Order::new(ty, Oid::from(collation));
        let kind = file.number()?;
        order.count = file.number()?;
        let given = (0..file.number()?).map(|_| Labelled::restore(file));
        let given: Vec<Labelled> = given.collect::<io::Result<_>>()?;
        match (&mut order.kind, kind) {
            (Kind::Sorted { leaves, .. }, SORTED) => {
                let mut given = given.into_iter();
                loop {
                    let leaf: Vec<Labelled> = given.by_ref().take(LEAF / 2).collect();
                    if leaf.is_empty() {
                        break;
                    }
                    leaves.push(leaf);
                }
                // None but the only one is empty.
                if leaves.len() > 1 {
                    leaves.remove(0);
                }
            }
            (Kind::Hashed { hash, values, .. }, HASHED) => {
                for labelled in given {
                    // SAFETY: a value of the type, as it was kept.
                    let key = hash.map_or(0, |hash| unsafe {
                        let value = labelled.value.datum();
                        pg_sys::FunctionCall1Coll(hash, order.collation, value).value() as u64
                    });
                    values.entry(key).or_default().push(labelled);
                }
            }
            (Kind::Image, IMAGE) => {}
            _ => return Err(io::Error::other("values of a type compare in another way now")),
        }
        Ok(order)
    }
}

impl Labelled {
    fn save(&self, file: &mut Encoder) -> io::Result<()> {
        match &self.value {
            Kept::Value(value) => {
                file.number(0)?;
                file.number(value.value() as u64)?;
            }
            Kept::Image(words) => {
                file.number(1)?;
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
                file.bytes(&bytes)?;
            }
        }
        file.bytes(&self.label)?;
        file.number(self.number)
    }

    fn restore(file: &mut Decoder) -> io::Result<Labelled> {
        let value = match file.number()? {
            0 => Kept::Value(pg_sys::Datum::from(file.number()? as usize)),
            _ => {
                let bytes = file.bytes()?;
                let words = bytes
                    .chunks_exact(8)
                    .map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
                Kept::Image(words.collect())
            }
        };
        Ok(Labelled { value, label: file.bytes()?.into(), number: file.number()? })
    }
}
