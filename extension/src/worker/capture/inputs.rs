//! Who gets which rows: the inputs of the attached views, and how rows of tables are read for them.
//!
//! Inputs that take the same columns of the same tables have one *shape*. A row is read once for each shape, whoever
//! takes it.

use super::trouble::{no_identity, Trouble};
use crate::pg::catalog;
use crate::pg::decoding::{own_writes, Change, ChangeKind};
use crate::pg::heap::{Deformer, Projection};
use crate::pg::ids::RelationId;
use crate::pg::inval;
use crate::pg::relation::{numbers_in_child, with_historic_relation, RelationRef, TABLE_OID};
use crate::pg::value::type_oid;
use crate::pg::xact::SnapshotCopy;
use engine::DataflowId;
use hashbrown::HashMap;
use plan::row::Row;
use plan::types::Type;
use plan::SourceId;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// One source of the dataflow of a view or an index.
pub struct Input {
    pub dataflow: DataflowId,
    /// Which source of the dataflow.
    pub source: SourceId,
    pub table: RelationId,
    /// Columns needed, by the base table's attribute numbers.
    pub columns: Vec<(i16, Type)>,
    /// The base table and everything that inherits from it.
    pub members: BTreeSet<RelationId>,
    /// Transactions whose effects were read when the rows of the table were; none of those that are decoded, if nothing was read.
    pub already_read: Option<SnapshotCopy>,
}

impl Input {
    /// Whether the rows that it began with have what a transaction did.
    pub fn has_read(&self, xid: u32) -> bool {
        self.already_read.as_ref().is_some_and(|snapshot| snapshot.sees(xid))
    }

    /// Whether it is no table but the present time.
    pub fn is_clock(&self) -> bool {
        self.members.is_empty()
    }
}

/// Number of an input. Numbers grow, and none is used twice.
pub type InputId = usize;

/// Number of a shape. Numbers grow, and none is used twice.
pub type ShapeId = usize;

/// Columns of a table and of those that inherit from it.
pub struct Shape {
    table: RelationId,
    columns: Vec<(i16, Type)>,
    /// The base table and everything that inherits from it.
    pub members: BTreeSet<RelationId>,
    /// The inputs that have it.
    pub readers: Rc<[InputId]>,
    /// Which running transaction, by its number, is the first of which nobody needs what comes for this shape.
    unused_from: Option<u64>,
}

impl Shape {
    fn fits(&self, input: &Input) -> bool {
        self.table == input.table && self.columns == input.columns && self.members == input.members
    }
}

/// How the rows of one table are read for one shape.
struct Reading {
    projection: Projection,
    /// Whether old rows carry all columns needed; else the name of the table, for the message.
    identity: Result<(), String>,
}

/// What a change takes away and what it adds.
#[derive(Clone, Default)]
pub struct Rows {
    pub old: Option<Row>,
    pub new: Option<Row>,
}

/// The inputs, by what they take.
pub struct Inputs {
    /// With their shapes; the present time has none.
    inputs: BTreeMap<InputId, (Input, Option<ShapeId>)>,
    shapes: BTreeMap<ShapeId, Shape>,
    next_input: InputId,
    next_shape: ShapeId,
    routes: HashMap<RelationId, Rc<[ShapeId]>>,
    readings: HashMap<(RelationId, ShapeId), Option<Rc<Reading>>>,
    generation: u64,
    deformer: Deformer,
}

impl Inputs {
    /// Nobody takes anything yet.
    pub fn new() -> Inputs {
        Inputs {
            inputs: BTreeMap::new(),
            shapes: BTreeMap::new(),
            next_input: 0,
            next_shape: 0,
            routes: HashMap::new(),
            readings: HashMap::new(),
            generation: 0,
            deformer: Deformer::default(),
        }
    }

    pub fn add(&mut self, input: Input) {
        let shape = (!input.is_clock()).then(|| self.shape_for(&input));
        self.inputs.insert(self.next_input, (input, shape));
        self.next_input += 1;
        self.route();
    }

    fn shape_for(&mut self, input: &Input) -> ShapeId {
        if let Some((id, _)) = self.shapes.iter().find(|(_, shape)| shape.fits(input)) {
            return *id;
        }
        let shape = Shape {
            table: input.table,
            columns: input.columns.clone(),
            members: input.members.clone(),
            readers: Rc::new([]),
            unused_from: None,
        };
        self.shapes.insert(self.next_shape, shape);
        self.next_shape += 1;
        self.next_shape - 1
    }

    /// Forgets the inputs of a dataflow. `next` is the number of the next transaction that comes while it runs: of those
    /// before, what comes for the inputs' shapes is still collected, so that the view can be attached again.
    pub fn remove(&mut self, dataflow: DataflowId, next: u64) {
        self.inputs.retain(|_, (input, _)| input.dataflow != dataflow);
        self.route();
        for shape in self.shapes.values_mut().filter(|shape| shape.readers.is_empty()) {
            shape.unused_from.get_or_insert(next);
        }
    }

    /// Forgets shapes for which nothing is collected any more; `oldest` is the number of the oldest running transaction.
    pub fn prune(&mut self, oldest: u64) {
        let is_needed = |shape: &Shape| shape.unused_from.is_none_or(|from| oldest < from);
        if !self.shapes.values().all(is_needed) {
            self.shapes.retain(|_, shape| is_needed(shape));
            self.route();
        }
    }

    fn route(&mut self) {
        let mut readers: HashMap<ShapeId, Vec<InputId>> = HashMap::new();
        for (id, (_, shape)) in &self.inputs {
            if let Some(shape) = shape {
                readers.entry(*shape).or_default().push(*id);
            }
        }
        let mut routes: HashMap<RelationId, Vec<ShapeId>> = HashMap::new();
        for (id, shape) in &mut self.shapes {
            shape.readers = readers.remove(id).unwrap_or_default().into();
            if !shape.readers.is_empty() {
                shape.unused_from = None;
            }
            for member in &shape.members {
                routes.entry(*member).or_default().push(*id);
            }
        }
        self.routes = routes.into_iter().map(|(relid, ids)| (relid, ids.into())).collect();
        own_writes::note_read(self.routes.keys().copied());
        self.readings.clear();
    }

    pub fn get(&self, id: InputId) -> Option<&Input> {
        self.inputs.get(&id).map(|(input, _)| input)
    }

    pub fn iter(&self) -> impl Iterator<Item = (InputId, &Input)> {
        self.inputs.iter().map(|(id, (input, _))| (*id, input))
    }

    /// The shapes that have rows of a table.
    pub fn shapes_of(&self, table: RelationId) -> Option<Rc<[ShapeId]>> {
        self.routes.get(&table).cloned()
    }

    pub fn shapes(&self) -> impl Iterator<Item = (ShapeId, &Shape)> {
        self.shapes.iter().map(|(id, shape)| (*id, shape))
    }

    /// The inputs of a shape.
    pub fn readers(&self, id: ShapeId) -> Rc<[InputId]> {
        self.shapes.get(&id).map(|shape| Rc::clone(&shape.readers)).unwrap_or_default()
    }

    /// Shapes that come from now on have numbers from this one on.
    pub fn next_shape(&self) -> ShapeId {
        self.next_shape
    }

    /// The inputs that rows of a table go to.
    pub fn readers_of_table(&self, table: RelationId) -> Vec<InputId> {
        let shapes = self.shapes_of(table).unwrap_or_default();
        shapes.iter().flat_map(|id| self.readers(*id).to_vec()).collect()
    }

    /// The shapes that have rows of truncated tables, and whether they have only such rows.
    pub fn truncated(&self, relids: &[RelationId]) -> Vec<(ShapeId, bool)> {
        let routes = relids.iter().filter_map(|relid| self.routes.get(relid));
        let concerned: BTreeSet<ShapeId> = routes.flat_map(|ids| ids.iter().copied()).collect();
        let is_whole = |id: ShapeId| {
            let shape = self.shapes.get(&id);
            shape.is_some_and(|shape| shape.members.iter().all(|member| relids.contains(member)))
        };
        concerned.into_iter().map(|id| (id, is_whole(id))).collect()
    }

    /// Takes a change apart, for the calls of `read` that follow.
    pub fn load(&mut self, change: &Change<'_>) {
        self.deformer.load(&change.relation, change.old, change.new);
    }

    /// What the change loaded last means for a shape.
    pub fn read(&mut self, id: ShapeId, change: &Change<'_>) -> Result<Rows, Trouble> {
        let reading = self.reading(&change.relation, id).ok_or(Trouble::Changed)?;
        if change.kind != ChangeKind::Insert {
            reading.identity.as_ref().map_err(|table| Trouble::Problem(no_identity(table)))?;
        }
        let (projection, has_old) = (&reading.projection, change.old.is_some());
        match (change.kind, change.new) {
            (ChangeKind::Update, Some(_)) => {
                // Without an old row the identity has not changed, and with it no column needed.
                if !has_old {
                    return Ok(Rows::default());
                }
                let old = self.deformer.old_row(projection)?;
                let new = self.deformer.new_row(projection, true)?;
                Ok(match old == new {
                    true => Rows::default(),
                    false => Rows { old: Some(old), new: Some(new) },
                })
            }
            (ChangeKind::Insert, Some(_)) => {
                Ok(Rows { old: None, new: Some(self.deformer.new_row(projection, false)?) })
            }
            (ChangeKind::Delete, _) if has_old => {
                Ok(Rows { old: Some(self.deformer.old_row(projection)?), new: None })
            }
            _ => Err(Trouble::Changed),
        }
    }

    /// How the relation's rows are read for a shape; `None` if it is not what it was.
    fn reading(&mut self, relation: &RelationRef<'_>, id: ShapeId) -> Option<Rc<Reading>> {
        if self.generation != inval::generation() {
            self.generation = inval::generation();
            self.readings.clear();
        }
        let shape = self.shapes.get(&id)?;
        let make = || read_as(relation, shape).map(Rc::new);
        self.readings.entry((relation.id(), id)).or_insert_with(make).clone()
    }
}

/// Finds the shape's columns in a table: by number in the base table itself, by name in others.
fn read_as(relation: &RelationRef<'_>, shape: &Shape) -> Option<Reading> {
    let attributes = relation.attributes();
    let numbers = shape.columns.iter().map(|(number, _)| *number);
    let numbers: Vec<i16> = if relation.id() == shape.table {
        numbers.collect()
    } else {
        let parent = with_historic_relation(shape.table, |parent| parent.attributes())?;
        numbers_in_child(numbers, &parent, &attributes)?
    };
    let columns: Vec<(i16, Type)> =
        numbers.iter().zip(&shape.columns).map(|(number, (_, ty))| (*number, *ty)).collect();
    let fits = columns.iter().filter(|(number, _)| *number != TABLE_OID).all(|(number, ty)| {
        let mut found = attributes.iter().filter(|attribute| attribute.number == *number);
        found.any(|attribute| attribute.base_type().to_u32() == type_oid(*ty))
    });
    if !fits {
        return None;
    }
    let identity = match relation.identity_covers(&numbers) {
        true => Ok(()),
        false => Err(catalog::qualified_name(relation.id())),
    };
    Some(Reading { projection: Projection { columns }, identity })
}
