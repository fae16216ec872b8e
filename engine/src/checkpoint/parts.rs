//! The parts of the dataflow that a thread has, as they are found while it is rendered.

use super::file::{Blocks, Header, Origin};
use super::saving::{Frozen, Saving};
use crate::core::column::Column;
use crate::core::updates::Time;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

/// State of one operator.
pub(crate) trait Part {
    /// Nothing before `time` has to be told apart any more.
    fn advance(&mut self, time: Time);

    /// Whether all before `time` is in it.
    fn is_complete_to(&self, time: Time) -> bool;

    /// What it keeps now. All before the time is in it to which everything has been advanced.
    fn freeze(&self) -> Box<dyn Frozen>;
}

/// The traces that have not yet got what they start with, by name.
pub(crate) type Unseeded = Rc<RefCell<Vec<String>>>;

/// What a dataflow can be saved as, and what it starts with.
pub(crate) struct Parts {
    header: Header,
    parts: Vec<(String, Box<dyn Part>)>,
    /// An operator that has state and no part.
    unable: Option<&'static str>,
    unseeded: Unseeded,
    origin: Option<Origin>,
    /// What is wrong with where it comes from.
    wrong: Option<String>,
    as_of: Time,
}

thread_local! {
    /// Those of the dataflow that is being rendered.
    static BUILT: RefCell<Option<Parts>> = const { RefCell::new(None) };
}

impl Parts {
    /// Of a dataflow that starts at `as_of` with what is in a file, if there is one.
    pub(crate) fn new(header: Header, from: Option<&Path>, as_of: Time) -> Parts {
        let origin = from.map(|path| Origin::open(path, &header)).transpose();
        let (origin, wrong) = match origin {
            Ok(origin) => (origin, None),
            Err(error) => (None, Some(error)),
        };
        let (parts, unseeded) = (Vec::new(), Unseeded::default());
        Parts { header, parts, unable: None, unseeded, origin, wrong, as_of }
    }

    /// When the dataflow starts.
    pub(crate) fn as_of(&self) -> Time {
        self.as_of
    }

    /// Why the dataflow that was rendered does not start with what it was to start with.
    pub(crate) fn trouble(&self) -> Option<String> {
        let has_more = || self.origin.as_ref().is_some_and(|origin| !origin.is_at_end());
        let more = || has_more().then(|| "it has more parts".to_owned());
        let unable = || {
            let unable = self.unable.filter(|_| self.origin.is_some());
            unable.map(|what| format!("a {what} cannot be saved"))
        };
        self.wrong.clone().or_else(unable).or_else(more)
    }

    /// A trace that has not yet got what it starts with.
    pub(crate) fn unseeded(&self) -> Option<String> {
        self.unseeded.borrow().first().cloned()
    }

    /// Nothing before `time` has to be told apart any more.
    pub(crate) fn advance(&mut self, time: Time) {
        self.parts.iter_mut().for_each(|(_, part)| part.advance(time));
    }

    /// One in which not all before `time` is.
    pub(crate) fn incomplete_at(&self, time: Time) -> Option<&str> {
        let incomplete = self.parts.iter().find(|(_, part)| !part.is_complete_to(time));
        incomplete.map(|(name, _)| name.as_str())
    }

    /// Begins a file of all parts as they are now, those of `first` before the others.
    pub(crate) fn save<'a>(
        &'a self,
        path: &Path,
        first: impl Iterator<Item = (&'a str, &'a dyn Part)>,
    ) -> Result<Saving, String> {
        if let Some(unable) = self.unable {
            return Err(format!("a {unable} cannot be saved"));
        }
        let parts = self.parts.iter().map(|(name, part)| (name.as_str(), &**part));
        let frozen = first.chain(parts).map(|(name, part)| (name.to_owned(), part.freeze()));
        Saving::begin(path, &self.header, frozen.collect()).map_err(|error| error.to_string())
    }
}

/// Renders a dataflow that can be saved.
pub(crate) fn building<T>(parts: Parts, render: impl FnOnce() -> T) -> (T, Parts) {
    BUILT.set(Some(parts));
    let rendered = render();
    let mut parts = BUILT.take().expect("nobody else takes them");
    if parts.origin.as_ref().is_some_and(Origin::is_at_end) {
        parts.origin = None;
    }
    (rendered, parts)
}

/// Whether the dataflow that is being rendered is one that can be saved.
pub(crate) fn is_kept() -> bool {
    BUILT.with_borrow(|built| built.is_some())
}

/// Whether it starts with what another one had: what is there without any input has been put out before.
pub(crate) fn has_origin() -> bool {
    BUILT.with_borrow(|built| built.as_ref().is_some_and(|parts| parts.origin.is_some()))
}

/// When it starts.
pub(crate) fn as_of() -> Time {
    BUILT.with_borrow(|built| built.as_ref().map_or(0, |parts| parts.as_of))
}

/// It has state that cannot be saved.
pub(crate) fn refuse(what: &'static str) {
    BUILT.with_borrow_mut(|built| {
        if let Some(parts) = built {
            parts.unable = Some(what);
        }
    });
}

/// What it starts with of an operator; `None` if it starts with nothing. A trace is counted among the unseeded, until its owner
/// takes it from there.
pub(crate) fn take<K: Column, V: Column, T: Column, R: Column>(
    name: &str,
) -> Option<Blocks<K, V, T, R>> {
    BUILT.with_borrow_mut(|built| {
        let Parts { origin, wrong, .. } = built.as_mut()?;
        let taken = origin.as_mut()?.part(name);
        if let Err(error) = &taken {
            wrong.get_or_insert_with(|| error.clone());
        }
        Some(taken.unwrap_or_default())
    })
}

/// Counts the traces that wait for what they start with.
pub(crate) fn unseeded() -> Unseeded {
    BUILT
        .with_borrow(|built| built.as_ref().map(|parts| Rc::clone(&parts.unseeded)))
        .unwrap_or_default()
}

/// Adds a part.
pub(crate) fn add(name: &str, part: impl Part + 'static) {
    BUILT.with_borrow_mut(|built| {
        if let Some(parts) = built {
            parts.parts.push((name.to_owned(), Box::new(part)));
        }
    });
}
