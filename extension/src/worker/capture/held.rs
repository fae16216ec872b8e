//! Rows of transactions that run, until it is known what becomes of them.
//!
//! They are kept as bytes, in blocks, once for each shape. What does not fit into memory goes to a file without a name,
//! one for each transaction. If that is not possible either, the rows are let go, and the views concerned are attached
//! again when the transaction has committed: their tables have the rows then.

use super::feeding::Portion;
use super::inputs::ShapeId;
use super::trouble::Trouble;
use crate::pg::decoding::Part;
use crate::pg::ids::RelationId;
use crate::pg::inval::Invalidated;
use engine::spill::{Extent, Store};
use engine::{Spill, Time};
use hashbrown::HashMap;
use plan::row::Row;
use plan::SourceId;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::rc::Rc;

/// Bytes of a block, or little more.
const BLOCK: usize = 16 << 10;

/// At least so much may be held in memory.
const LEAST_MEMORY: usize = 16 << 20;

/// Part of `eddy.memory_limit` that may be held in memory.
const SHARE: usize = 8;

/// How much may be held, and where.
pub struct Limits {
    memory: usize,
    spill: Option<Spill>,
}

impl Limits {
    /// Of `eddy.memory_limit`, 0 for none, the share for rows that are held.
    pub fn new(memory_limit: usize, spill: Option<Spill>) -> Limits {
        let memory = match memory_limit {
            0 => usize::MAX,
            limit => (limit / SHARE).max(LEAST_MEMORY),
        };
        Limits { memory, spill }
    }
}

/// Bytes held by all transactions together. Those in memory are also among what the engine counts for all views, like
/// everything that is allocated.
#[derive(Default)]
struct Usage {
    memory: Cell<usize>,
    disk: Cell<u64>,
}

fn add<T: Copy + std::ops::Add<Output = T>>(cell: &Cell<T>, more: T) {
    cell.set(cell.get() + more);
}

/// The transactions that run and of which something has come.
pub struct Running {
    transactions: BTreeMap<u32, Held>,
    next_number: u64,
    usage: Rc<Usage>,
    limits: Limits,
}

impl Running {
    /// No transaction has begun.
    pub fn new(limits: Limits) -> Running {
        Running { transactions: BTreeMap::new(), next_number: 0, usage: Rc::default(), limits }
    }

    /// How much may be held from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The number of the next transaction.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// The number of the oldest transaction, or of the next if there is none.
    pub fn oldest(&self) -> u64 {
        self.transactions.values().map(|held| held.number).min().unwrap_or(self.next_number)
    }

    fn held(&mut self, transaction: u32) -> &mut Held {
        let next_number = &mut self.next_number;
        self.transactions.entry(transaction).or_insert_with(|| {
            *next_number += 1;
            Held::new(*next_number - 1)
        })
    }

    /// A part changes a table. Of shapes that are new from now on, it has done so before.
    pub fn note_table(&mut self, part: Part, table: RelationId, next_shape: ShapeId) {
        let held = self.held(part.transaction);
        if held.last_table != table {
            held.last_table = table;
            held.tables.entry(table).or_insert(next_shape);
        }
    }

    /// A row comes or goes.
    pub fn push(&mut self, part: Part, shape: ShapeId, row: &Row, is_insert: bool) {
        let kind = if is_insert { kind::INSERT } else { kind::DELETE };
        self.write(part, shape, kind, row.as_bytes());
    }

    /// All rows of a shape are gone.
    pub fn truncate(&mut self, part: Part, shape: ShapeId) {
        self.write(part, shape, kind::TRUNCATE, &[]);
    }

    fn write(&mut self, part: Part, shape: ShapeId, kind: u8, bytes: &[u8]) {
        let (usage, limits) = (&self.usage, &self.limits);
        // Its table has been noted before.
        let Some(held) = self.transactions.get_mut(&part.transaction) else { return };
        if held.is_lost {
            return;
        }
        let log = held.logs.entry(shape).or_insert_with(|| Log::new(Rc::clone(usage)));
        log.append(part.xid, kind, bytes);
        if log.open.len() < BLOCK {
            return;
        }
        if usage.memory.get() <= limits.memory {
            return log.close();
        }
        if let Err(error) = log.close_to_disk(&mut held.file, limits) {
            pgrx::log!(
                "pg_eddy: views will be attached again when transaction {} has committed, whose changes cannot be kept: {error}",
                part.transaction
            );
            held.let_go();
        }
    }

    /// A change cannot be read for a shape.
    pub fn note_trouble(&mut self, part: Part, shape: ShapeId, trouble: Trouble) {
        let held = self.held(part.transaction);
        held.troubles.entry((shape, part.xid)).or_insert(trouble);
    }

    /// A table has lost changes, for it was not logged for a while.
    pub fn note_unlogged(
        &mut self,
        transaction: u32,
        tables: impl IntoIterator<Item = RelationId>,
    ) {
        let mut tables = tables.into_iter().peekable();
        if tables.peek().is_some() {
            self.held(transaction).unlogged.extend(tables);
        }
    }

    /// A transaction changes the catalogs.
    pub fn note_invalidated(&mut self, transaction: u32, invalidated: Invalidated) {
        if !invalidated.is_empty() {
            self.held(transaction).invalidated.merge(invalidated);
        }
    }

    /// Forgets what a part did.
    pub fn abort(&mut self, part: Part) {
        if part.xid == part.transaction {
            self.transactions.remove(&part.transaction);
        } else if let Some(held) = self.transactions.get_mut(&part.transaction) {
            held.abort(part.xid);
        }
    }

    /// What these parts of a transaction did that has committed.
    pub fn take(&mut self, transaction: u32, parts: HashSet<u32>) -> Option<Committed> {
        let held = self.transactions.remove(&transaction)?;
        let Held { tables, logs, mut troubles, unlogged, invalidated, is_lost, .. } = held;
        troubles.retain(|(_, xid), _| parts.contains(xid));
        let troubles = troubles.into_iter().map(|((shape, _), trouble)| (shape, trouble)).collect();
        let logs = logs.into_iter().map(|(shape, log)| (shape, Rc::new(log))).collect();
        let parts = Rc::new(parts);
        Some(Committed { tables, logs, troubles, unlogged, invalidated, parts, is_lost })
    }
}

/// What is held of a transaction.
struct Held {
    /// In the order in which something of them came.
    number: u64,
    /// The tables that it changed, each with the number of the first shape that was not there when the first change of it
    /// came: those from this number on lack rows.
    tables: HashMap<RelationId, ShapeId>,
    last_table: RelationId,
    logs: BTreeMap<ShapeId, Log>,
    /// By shape and subtransaction.
    troubles: BTreeMap<(ShapeId, u32), Trouble>,
    unlogged: BTreeSet<RelationId>,
    invalidated: Invalidated,
    /// Whether rows were let go.
    is_lost: bool,
    file: Option<Rc<RefCell<Store>>>,
}

impl Held {
    fn new(number: u64) -> Held {
        Held {
            number,
            tables: HashMap::new(),
            last_table: RelationId::default(),
            logs: BTreeMap::new(),
            troubles: BTreeMap::new(),
            unlogged: BTreeSet::new(),
            invalidated: Invalidated::NONE,
            is_lost: false,
            file: None,
        }
    }

    fn abort(&mut self, xid: u32) {
        self.troubles.retain(|(_, of), _| *of != xid);
        self.logs.values_mut().for_each(|log| log.forget(xid));
    }

    fn let_go(&mut self) {
        self.logs.clear();
        self.file = None;
        self.is_lost = true;
    }
}

/// What a transaction did that came while it ran, now that it has committed.
pub struct Committed {
    tables: HashMap<RelationId, ShapeId>,
    logs: BTreeMap<ShapeId, Rc<Log>>,
    troubles: BTreeMap<ShapeId, Trouble>,
    /// Tables that lost changes.
    pub unlogged: BTreeSet<RelationId>,
    /// What it changed of the catalogs.
    pub invalidated: Invalidated,
    parts: Rc<HashSet<u32>>,
    is_lost: bool,
}

/// What a shape gets of a transaction.
pub enum Share {
    Rows(HeldRows),
    Nothing,
    /// Not all that it should.
    Trouble(Trouble),
}

impl Committed {
    /// What a shape with these tables gets, at the transaction's time.
    pub fn share_of(&self, shape: ShapeId, members: &BTreeSet<RelationId>, time: Time) -> Share {
        let changed = |member: &RelationId| self.tables.get(member);
        let mut firsts = members.iter().filter_map(changed).peekable();
        if firsts.peek().is_none() {
            return Share::Nothing;
        }
        if self.is_lost || firsts.any(|first| shape >= *first) {
            return Share::Trouble(Trouble::Changed);
        }
        if let Some(trouble) = self.troubles.get(&shape) {
            return Share::Trouble(trouble.clone());
        }
        match self.logs.get(&shape) {
            Some(log) => {
                let parts = Rc::clone(&self.parts);
                Share::Rows(HeldRows { log: Rc::clone(log), parts, time })
            }
            None => Share::Nothing,
        }
    }
}

/// What entries of a block are.
mod kind {
    pub const INSERT: u8 = 0;
    pub const DELETE: u8 = 1;
    pub const TRUNCATE: u8 = 2;
    /// What follows is of the subtransaction with this number. The first entry of each block is one.
    pub const PART: u8 = 3;
}

/// Bytes before those of an entry: its kind and its length.
const HEADER: usize = 1 + size_of::<u32>();

/// Changes of one shape, in order.
struct Log {
    blocks: Vec<Block>,
    /// The block that is being written.
    open: Vec<u8>,
    /// Of which subtransaction the last entry in it is, and whether all are.
    part: u32,
    is_of_one: bool,
    /// Needed as long as blocks are in it.
    file: Option<Rc<RefCell<Store>>>,
    usage: Rc<Usage>,
}

struct Block {
    place: Place,
    /// The subtransaction, if all entries are of one.
    part: Option<u32>,
}

enum Place {
    Memory(Vec<u8>),
    Disk(Extent),
}

impl Log {
    fn new(usage: Rc<Usage>) -> Log {
        let (blocks, open) = (Vec::new(), Vec::new());
        Log { blocks, open, part: 0, is_of_one: true, file: None, usage }
    }

    fn append(&mut self, part: u32, kind: u8, bytes: &[u8]) {
        if self.open.is_empty() || self.part != part {
            self.is_of_one = self.open.is_empty();
            self.part = part;
            self.append_entry(kind::PART, &part.to_le_bytes());
        }
        self.append_entry(kind, bytes);
    }

    fn append_entry(&mut self, kind: u8, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).expect("values have less than a gigabyte");
        self.open.push(kind);
        self.open.extend_from_slice(&length.to_le_bytes());
        self.open.extend_from_slice(bytes);
        add(&self.usage.memory, HEADER + bytes.len());
    }

    /// Ends the block that is being written.
    fn take_open(&mut self) -> (Vec<u8>, Option<u32>) {
        let capacity = self.open.capacity();
        let bytes = std::mem::replace(&mut self.open, Vec::with_capacity(capacity.min(2 * BLOCK)));
        (bytes, self.is_of_one.then_some(self.part))
    }

    fn close(&mut self) {
        let (mut bytes, part) = self.take_open();
        bytes.shrink_to_fit();
        self.blocks.push(Block { place: Place::Memory(bytes), part });
    }

    fn close_to_disk(
        &mut self,
        file: &mut Option<Rc<RefCell<Store>>>,
        limits: &Limits,
    ) -> io::Result<()> {
        let spill = limits.spill.as_ref();
        let spill = spill.ok_or_else(|| io::Error::other("there is no directory for that"))?;
        if self.usage.disk.get() + self.open.len() as u64 > spill.limit {
            return Err(io::Error::other("eddy.spill_limit is reached"));
        }
        let file = match file {
            Some(file) => file,
            None => file.insert(Rc::new(RefCell::new(Store::create(&spill.directory)?))),
        };
        let extent = file.borrow_mut().write(&self.open)?;
        let (bytes, part) = self.take_open();
        self.file.get_or_insert_with(|| Rc::clone(file));
        self.usage.memory.set(self.usage.memory.get() - bytes.len());
        add(&self.usage.disk, bytes.len() as u64);
        self.blocks.push(Block { place: Place::Disk(extent), part });
        Ok(())
    }

    /// Lets go of blocks that are of nothing but this subtransaction.
    fn forget(&mut self, part: u32) {
        for block in self.blocks.extract_if(.., |block| block.part == Some(part)) {
            self.usage.release(&block.place);
            if let (Place::Disk(extent), Some(file)) = (block.place, &self.file) {
                file.borrow_mut().release(extent);
            }
        }
    }

    /// The entries of a block.
    fn read(&self, number: usize) -> Option<io::Result<std::borrow::Cow<'_, [u8]>>> {
        let Some(block) = self.blocks.get(number) else {
            let is_open = number == self.blocks.len() && !self.open.is_empty();
            return is_open.then(|| Ok(self.open.as_slice().into()));
        };
        Some(match (&block.place, &self.file) {
            (Place::Memory(bytes), _) => Ok(bytes.as_slice().into()),
            (Place::Disk(extent), Some(file)) => file.borrow().read(extent).map(Into::into),
            (Place::Disk(_), None) => Err(io::Error::other("a block has no file")),
        })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.blocks.iter().for_each(|block| self.usage.release(&block.place));
        self.usage.memory.set(self.usage.memory.get() - self.open.len());
    }
}

impl Usage {
    fn release(&self, place: &Place) {
        match place {
            Place::Memory(bytes) => self.memory.set(self.memory.get() - bytes.len()),
            Place::Disk(extent) => self.disk.set(self.disk.get() - extent.length() as u64),
        }
    }
}

/// Rows of one shape of a transaction that has committed, for one input.
#[derive(Clone)]
pub struct HeldRows {
    log: Rc<Log>,
    parts: Rc<HashSet<u32>>,
    time: Time,
}

/// Reads held rows from the beginning to the end.
pub struct Reader {
    rows: HeldRows,
    source: SourceId,
    block: usize,
}

impl Reader {
    /// Of rows for a source.
    pub fn new(rows: HeldRows, source: SourceId) -> Reader {
        Reader { rows, source, block: 0 }
    }

    /// What the next block has; `None` after the last one.
    pub fn next(&mut self) -> io::Result<Option<Vec<Portion>>> {
        let Some(bytes) = self.rows.log.read(self.block) else { return Ok(None) };
        self.block += 1;
        let portions = self.portions_of(&bytes?);
        portions
            .map(Some)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a block is damaged"))
    }

    /// What a block has; `None` if it is none.
    fn portions_of(&self, mut bytes: &[u8]) -> Option<Vec<Portion>> {
        let HeldRows { parts, time, .. } = &self.rows;
        let (mut portions, mut updates) = (Vec::new(), Vec::new());
        let mut is_void = false;
        while let Some((kind, rest)) = bytes.split_first() {
            let (length, rest) = rest.split_first_chunk()?;
            let (entry, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            bytes = rest;
            match *kind {
                kind::PART => {
                    is_void = !parts.contains(&u32::from_le_bytes(entry.try_into().ok()?))
                }
                _ if is_void => {}
                kind::INSERT => updates.push((Row::from_bytes(entry), *time, 1)),
                kind::DELETE => updates.push((Row::from_bytes(entry), *time, -1)),
                kind::TRUNCATE => {
                    portions.push(Portion::Update(self.source, std::mem::take(&mut updates)));
                    portions.push(Portion::Truncate(self.source, *time));
                }
                _ => return None,
            }
        }
        portions.push(Portion::Update(self.source, updates));
        Some(portions)
    }
}
