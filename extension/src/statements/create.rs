//! `CREATE INCREMENTAL VIEW`, and EXPLAIN of it.

use super::companion::Origin;
use super::{bodies, changes_table, cross_products, identity, mirror, own_settings, sharing};
use crate::compile::{self, CompiledQuery, Known};
use crate::errors::{Error, ErrorKind};
use crate::hooks::statement::{Creation, ExplainOptions};
use crate::hooks::utility::{Call, Then};
use crate::pg::{catalog, creations, process, registry, report, view_settings, view_statistics};
use crate::rewrite::tree::Tree;
use crate::settings::{self, Fill, MaterializedViews};
use crate::shared;
use pgrx::pg_sys::Oid;
use plan::ViewPlan;
use rules::security_label::{Label, Options, Storage};

/// Decides whether a view is to be incremental and, if so, checks everything that can be checked
/// before it exists.
pub fn before(call: &mut Call, mut creation: Creation, written: bool) -> Result<Then, Error> {
    match wish(call, &mut creation, written)? {
        Wish::Plain => Ok(Then::Run),
        Wish::Incremental => create(call, creation, written),
        Wish::IfPossible => {
            attempt(call, |call| create(call, creation, written)).or_else(|refusal| {
                tell_plain(&creation.name(), &refusal);
                Ok(Then::Run)
            })
        }
    }
}

/// Tries what may be refused. If it is, the statement and the settings are as they were.
fn attempt(
    call: &mut Call,
    work: impl FnOnce(&mut Call) -> Result<Then, Error>,
) -> Result<Then, Error> {
    let (former, level) = (call.clone(), view_settings::begin());
    match work(call) {
        // This level ends with the one within it.
        Ok(Then::Register { schema, tagged, options, .. }) => {
            Ok(Then::Register { schema, tagged, settings: level, options })
        }
        Ok(then) => {
            view_settings::end(level);
            Ok(then)
        }
        Err(refusal) => {
            *call = former;
            view_settings::end(level);
            Err(refusal)
        }
    }
}

fn create(call: &mut Call, mut creation: Creation, written: bool) -> Result<Then, Error> {
    shared::require_server()?;
    require_extension()?;
    let schema = creation.schema();
    if creation.existing_in(schema).is_some() {
        // PostgreSQL has the message, or the notice of IF NOT EXISTS.
        return Ok(if written { Then::RunTagged } else { Then::Run });
    }
    if catalog::is_temp_schema(schema) {
        return Err(Error::unsupported("an incremental view cannot be temporary"));
    }
    shared::require_worker()?;
    let (settings, options) = own_settings::enter_creation(call, &mut creation)?;
    let compiled = compile_statement(call, creation)?;
    identity::check(&compiled.sources)?;
    // The query might have no end where the dataflow has one, which therefore fills the view.
    if is_filled_later(call) || compile::is_beyond_sql(&compiled) {
        call.skip_data();
    }
    // Its functions run under another search path while it is filled.
    call.qualify_creation(schema);
    Ok(Then::Register { schema, tagged: written, settings, options })
}

/// Whether the view's dataflow is going to fill it, so that nothing is computed twice.
fn is_filled_later(call: &Call) -> bool {
    match settings::fill() {
        Fill::Auto => !call.is_in_block(),
        Fill::Dataflow => true,
        Fill::Query => false,
    }
}

/// What kind of view is asked for.
enum Wish {
    Plain,
    Incremental,
    /// Incremental, or else plain.
    IfPossible,
}

/// What is asked for by the word, by the option, or by `eddy.materialized_views`, which counts where the extension is.
fn wish(call: &mut Call, creation: &mut Creation, written: bool) -> Result<Wish, Error> {
    match require_no_contradiction(call, creation, written)? {
        Some(true) => Ok(Wish::Incremental),
        Some(false) => Ok(Wish::Plain),
        None if written => Ok(Wish::Incremental),
        None if registry::extension().is_none() || process::runs_script() => Ok(Wish::Plain),
        None => Ok(match settings::materialized_views() {
            MaterializedViews::Plain => Wish::Plain,
            MaterializedViews::Incremental => Wish::Incremental,
            // No other kind has such options.
            MaterializedViews::IncrementalOrPlain if own_settings::are_named(creation) => {
                Wish::Incremental
            }
            MaterializedViews::IncrementalOrPlain => Wish::IfPossible,
        }),
    }
}

/// Takes the option out of the statement; an error if it says something else than the word does.
pub(super) fn require_no_contradiction(
    call: &mut Call,
    creation: &mut Creation,
    written: bool,
) -> Result<Option<bool>, Error> {
    let option = call.take_option(creation, c"incremental");
    match option {
        Some(false) if written => Err(Error::new(
            ErrorKind::InvalidParameter,
            "option \"incremental\" contradicts CREATE INCREMENTAL VIEW",
        )),
        option => Ok(option),
    }
}

fn tell_plain(name: &str, refusal: &Error) {
    let message = format!("materialized view \"{name}\" is a plain one: {}", refusal.message);
    let mut notice = report::notice(message);
    if let Some(detail) = &refusal.detail {
        notice = notice.set_detail(detail.clone());
    }
    if let Some(hint) = &refusal.hint {
        notice = notice.set_hint(hint.clone());
    }
    report::tell(notice);
}

/// Registers a view that PostgreSQL has just created and filled.
pub fn created(view: Oid, options: Options) -> Result<(), Error> {
    if view == Oid::INVALID {
        return Err(Error::internal("the view just created cannot be found"));
    }
    let settings = view_settings::current();
    registry::insert(view, &Label { settings: settings.clone(), options });
    creations::note(view.into());
    changes_table::change(view, (None, options.changes), Origin::New)?;
    mirror::change((view, &settings), (Storage::View, options.storage), Origin::New)?;
    defined(view)
}

/// Checks and tells what can be of a view that has just got its definition.
pub(super) fn defined(view: Oid) -> Result<(), Error> {
    // The worker plans the text of the view's rule, in which names are qualified in another way.
    let compiled = compile::compile_view_by(view.into(), Known::Now)?;
    view_statistics::note(compiled.relid, &compiled.query.figures.text());
    bodies::check(&compiled)?;
    cross_products::tell(&compiled.query);
    // Last, because from here on writers wait for the end of the transaction.
    identity::provide(&compiled.query.sources)
}

/// `EXPLAIN CREATE INCREMENTAL VIEW`: shows the plan, creates nothing.
pub fn explain(
    call: &mut Call,
    mut creation: Creation,
    options: &ExplainOptions,
    written: bool,
) -> Result<Then, Error> {
    match wish(call, &mut creation, written)? {
        Wish::Plain => Ok(Then::Run),
        Wish::Incremental => explain_plan(call, creation, options),
        Wish::IfPossible => {
            attempt(call, |call| explain_plan(call, creation, options)).or(Ok(Then::Run))
        }
    }
}

fn explain_plan(
    call: &mut Call,
    mut creation: Creation,
    options: &ExplainOptions,
) -> Result<Then, Error> {
    if let Some((name, at)) = &options.unknown {
        let message = format!("unrecognized EXPLAIN option \"{name}\"");
        return Err(Error::new(ErrorKind::Syntax, message).at(*at));
    }
    if options.analyze {
        return Err(Error::unsupported("EXPLAIN ANALYZE of an incremental view is not supported")
            .hint("Leave out ANALYZE; eddy.views shows figures of an existing view."));
    }
    let (settings, _) = own_settings::enter_creation(call, &mut creation)?;
    let compiled = compile_statement(call, creation)?;
    view_settings::end(settings);
    let mut text = plan_text(&sharing::as_computed(&compiled.plan, true), &options.format)?;
    if options.verbose && options.format != "json" {
        sharing::lines(&compiled).iter().for_each(|line| text.extend(["\n", line]));
    }
    call.send_explanation(&text, options.format != "json")?;
    Ok(Then::Done)
}

fn compile_statement(call: &Call, creation: Creation) -> Result<CompiledQuery, Error> {
    let tree = Tree::copy_of(creation.query());
    let compiled =
        compile::compile_query(&tree, &view_settings::current(), Known::Now, &|table| {
            call.locate_table(table)
        })?;
    compile::require_rights(&tree)?;
    Ok(compiled)
}

/// The plan in one of EXPLAIN's formats.
pub fn plan_text(plan: &ViewPlan, format: &str) -> Result<String, Error> {
    match format {
        "" | "text" => Ok(plan::explain(plan).trim_end().to_string()),
        "json" => serde_json::to_string_pretty(plan)
            .map_err(|e| Error::internal(format!("plan cannot be written as JSON: {e}"))),
        other => Err(Error::unsupported(format!(
            "EXPLAIN (FORMAT {}) of an incremental view is not supported",
            other.to_uppercase()
        ))
        .hint("Use FORMAT TEXT or FORMAT JSON.")),
    }
}

pub(super) fn require_extension() -> Result<(), Error> {
    if registry::extension().is_none() {
        let message = "extension \"pg_eddy\" does not exist in this database";
        return Err(Error::new(ErrorKind::NotInPrerequisiteState, message)
            .hint("Run CREATE EXTENSION pg_eddy."));
    }
    Ok(())
}
