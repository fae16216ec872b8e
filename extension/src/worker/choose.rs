//! What a view that is about to be attached reads from indexes: those that are there, and those that are made for it.

use super::chosen::{columns_of_part, is_selective, Chosen, New, Sought, Spec};
use super::indexes::Indexes;
use super::kept_plans::{joins_of, Fed, KeptPlan, NewPlan, Part, Wanted};
use super::sources::Sources;
use crate::pg::ids::ViewId;
use crate::pg::index_cells::{MAX_KEY, MAX_READS};
use crate::pg::process;
use crate::sub_plans::{is_table, sub_plans_of};
use engine::{DataflowId, Form, Index, Lookup, Read, SubPlan, TableJoin};
use plan::expr::Expr;
use plan::{SourceId, ViewPlan};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// An index that a view would read is being made.
pub(super) struct InTheMaking;

impl Indexes {
    /// The plan of a view as its dataflow computes it, as long as that reads nothing of others.
    pub(super) fn computed<'s>(&self, sources: &'s Sources) -> Cow<'s, ViewPlan> {
        engine::as_computed(&sources.compiled.query.plan, self.workers, true)
    }

    /// What a view is to read; new indexes are named by `name`, but not made yet.
    pub(super) fn choose(
        &self,
        view: ViewId,
        sources: &Sources,
        mut name: impl FnMut() -> DataflowId,
    ) -> Result<Chosen, InTheMaking> {
        let mut chosen = Chosen::none(self.computed(sources).into_owned());
        if !self.are_shared {
            return Ok(chosen);
        }
        if self.parts.are_wanted() {
            self.choose_parts((view, sources), &mut chosen, &mut name)?;
        }
        let mut answered: BTreeSet<Lookup> =
            chosen.reads.iter().map(|read| (read.source, read.key.clone())).collect();
        for (lookup, filter) in engine::lookups(&chosen.plan, chosen.form) {
            // What parts put out is no table.
            if !is_table(&sources.compiled.query, lookup.0) {
                continue;
            }
            let sought = Sought::by_view(sources, chosen.form, &lookup);
            let found = self.look_up(sources, &sought, &filter, &mut chosen, &mut name)?;
            if let Some(index) = found {
                let (source, key) = lookup.clone();
                chosen.reads.push(Read { source, key, index });
                answered.insert(lookup);
            }
        }
        chosen.own = engine::sources_beside(&chosen.plan, &answered);
        Ok(chosen)
    }

    /// The index that answers a look-up of rows that meet a filter: one that is there or a new one, if it is worth one.
    fn look_up(
        &self,
        sources: &Sources,
        sought: &Sought,
        filter: &[Expr],
        chosen: &mut Chosen,
        name: &mut impl FnMut() -> DataflowId,
    ) -> Result<Option<DataflowId>, InTheMaking> {
        if sought.key.len() > MAX_KEY || chosen.all().len() >= MAX_READS {
            return Ok(None);
        }
        let there = self.table_index(sources, sought, &chosen.new)?;
        let found = match there {
            None if is_selective(filter) => None,
            None => self.add_new(sources, sought, chosen, name),
            found => found,
        };
        Ok(found.map(|(index, _)| index))
    }

    /// Lets a view read what is kept of its plan's parts, and what is going to be because enough views compute it: of sub-plans the
    /// largest, and then joins.
    fn choose_parts(
        &self,
        (view, sources): (ViewId, &Sources),
        chosen: &mut Chosen,
        name: &mut impl FnMut() -> DataflowId,
    ) -> Result<(), InTheMaking> {
        for sub_plan in sub_plans_of(&sources.compiled.query, &chosen.plan) {
            let wanted = Wanted::sub_plan(sources, &sub_plan, (&chosen.plan, chosen.form));
            // It may be part of one that is read.
            let Some(wanted) = wanted else { continue };
            let form = wanted.form;
            self.choose_part(view, wanted, chosen, |part, chosen| {
                self.new_sub_plan(sources, (part, &sub_plan), form, chosen, name).map(Some)
            })?;
        }
        for join in joins_of(sources, &chosen.plan) {
            let wanted = Wanted::join(sources, &join, (&chosen.plan, chosen.form));
            let form = wanted.form;
            self.choose_part(view, wanted, chosen, |part, chosen| {
                self.new_join(sources, (part, &join), form, chosen, name)
            })?;
        }
        Ok(())
    }

    /// Lets a view read what is kept of one part, or what `make` makes if enough views compute it.
    fn choose_part(
        &self,
        view: ViewId,
        Wanted { part, plan, source, form: own }: Wanted,
        chosen: &mut Chosen,
        make: impl FnOnce(Part, &mut Chosen) -> Result<Option<NewPlan>, InTheMaking>,
    ) -> Result<(), InTheMaking> {
        let (is_first, form) = (chosen.reads.is_empty(), chosen.form);
        let may_have = |other: Form| if is_first { other.fits(&plan) } else { other == form };
        let wanted = &plan.sources[source.0];
        let there =
            self.plans().find(|(_, _, kept)| may_have(kept.form()) && kept.answers(&part, wanted));
        let (index, form, beneath) = match there {
            Some((_, false, _)) => return Err(InTheMaking),
            Some((id, true, kept)) => (id, kept.form(), kept.beneath().collect::<Vec<_>>()),
            None => {
                let is_wanted = self.parts.are_enough(view, &part) && may_have(own);
                if !is_wanted || chosen.all().len() + 1 >= MAX_READS {
                    return Ok(());
                }
                // Of new tables nothing is left if it does not come about.
                let mut with_tables = Chosen { form: own, ..chosen.clone() };
                let Some(new) = make(part, &mut with_tables)? else { return Ok(()) };
                *chosen = with_tables;
                let made = (new.dataflow, own, new.plan.beneath().collect());
                chosen.plans.push(new);
                made
            }
        };
        if beneath.iter().any(|index| self.is_in_the_making(*index)) {
            return Err(InTheMaking);
        }
        chosen.beneath.extend(beneath);
        chosen.reads.push(Read { source, key: Vec::new(), index });
        (chosen.plan, chosen.form) = (plan, form);
        Ok(())
    }

    /// A join that is to be kept.
    fn new_join(
        &self,
        sources: &Sources,
        (part, join): (Part, &TableJoin),
        form: Form,
        chosen: &mut Chosen,
        name: &mut impl FnMut() -> DataflowId,
    ) -> Result<Option<NewPlan>, InTheMaking> {
        let mut table = |lookup: &Lookup| {
            let sought = Sought::by_view(sources, form, lookup);
            let there = self.table_index(sources, &sought, &chosen.new)?;
            Ok(there.or_else(|| self.add_new(sources, &sought, chosen, name)))
        };
        let tables = table(&join.left)?.zip(table(&join.right)?);
        let plan =
            tables.and_then(|tables| KeptPlan::of_join(part, tables.into(), process::database()));
        Ok(plan.map(|plan| NewPlan { dataflow: name(), plan, fed: Vec::new() }))
    }

    /// A sub-plan that is to be kept: like a view it looks up in indexes what is worth one, and is fed the rest.
    fn new_sub_plan(
        &self,
        sources: &Sources,
        (part, sub_plan): (Part, &SubPlan),
        form: Form,
        chosen: &mut Chosen,
        name: &mut impl FnMut() -> DataflowId,
    ) -> Result<NewPlan, InTheMaking> {
        let mut reads = Vec::new();
        for (lookup, filter) in engine::lookups(&sub_plan.plan, form) {
            let sought = Sought::by_part(sources, sub_plan, form, &lookup);
            let found = self.look_up(sources, &sought, &filter, chosen, name)?;
            let (source, key) = lookup;
            reads.extend(found.map(|index| Read { source, key, index }));
        }
        let answered = reads.iter().map(|read| (read.source, read.key.clone())).collect();
        let (query, dataflow) = (&sources.compiled.query, name());
        let feed = |own: SourceId| {
            let (source, columns) = columns_of_part(sources, sub_plan, own);
            Fed { input: (dataflow, own), source, columns }
        };
        let fed = engine::sources_beside(&sub_plan.plan, &answered).into_iter().map(feed);
        let index = Index::of_sub_plan(sub_plan, form);
        let fed = fed.collect();
        let plan =
            KeptPlan::of_sub_plan(query, (part, sub_plan), (index, reads), process::database());
        Ok(NewPlan { dataflow, plan, fed })
    }

    /// The index that answers a look-up: one that is there, or of those that are to be made.
    fn table_index(
        &self,
        sources: &Sources,
        sought: &Sought,
        new: &[New],
    ) -> Result<Option<(DataflowId, Spec)>, InTheMaking> {
        let there = self.tables().filter(|(_, _, spec)| spec.answers(sources, sought));
        // The widest is the one that most others find, too.
        let there = there.max_by_key(|(_, is_read, spec)| (*is_read, spec.columns.len()));
        let made = new.iter().find(|new| new.spec.answers(sources, sought));
        match (there, made) {
            (Some((_, false, _)), _) => Err(InTheMaking),
            (Some((id, true, spec)), _) => Ok(Some((id, spec.clone()))),
            (None, Some(new)) => Ok(Some((new.dataflow, new.spec.clone()))),
            (None, None) => Ok(None),
        }
    }

    /// One more that is to be made; `None` if its rows are too wide for the form.
    fn add_new(
        &self,
        sources: &Sources,
        sought: &Sought,
        chosen: &mut Chosen,
        name: &mut impl FnMut() -> DataflowId,
    ) -> Option<(DataflowId, Spec)> {
        let spec = Spec::new(sources, sought)?;
        let spec = self.tables().map(|(_, _, spec)| spec).fold(spec, Spec::widened);
        let new = New { dataflow: name(), source: sought.of, spec };
        chosen.new.push(new.clone());
        Some((new.dataflow, new.spec))
    }
}
