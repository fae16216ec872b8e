//! What other sessions' DDL does to this process's caches.
//!
//! Two kinds of code share the caches: ordinary transactions, which see the catalogs of now, and
//! decoding, which sees those of the record being read. Entries made by one are wrong for the other
//! while DDL lies between the two; [`Switch`] empties the caches at each change-over as long as
//! that can be.

use super::dependencies::Dependencies;
use super::wal;
use crate::pg::ids::RelationId;
use pgrx::pg_sys;
use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What may have been defined anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalidated {
    All,
    /// These relations and functions, the latter by the hash values of their numbers.
    Some {
        relations: BTreeSet<RelationId>,
        functions: BTreeSet<u32>,
    },
}

impl Invalidated {
    pub const NONE: Invalidated =
        Invalidated::Some { relations: BTreeSet::new(), functions: BTreeSet::new() };

    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Adds what another has.
    pub fn merge(&mut self, other: Invalidated) {
        match (&mut *self, other) {
            (Self::All, _) => {}
            (_, Self::All) => *self = Self::All,
            (
                Self::Some { relations, functions },
                Self::Some { relations: more, functions: others },
            ) => {
                relations.extend(more);
                functions.extend(others);
            }
        }
    }

    /// Whether one of these may have changed.
    pub fn touches(&self, dependencies: &Dependencies) -> bool {
        match self {
            Self::All => true,
            Self::Some { relations, functions } => dependencies.are_among(relations, functions),
        }
    }
}

thread_local! {
    static PENDING: RefCell<Invalidated> = const { RefCell::new(Invalidated::All) };
    /// Roles that changed since the last [`take_roles`], as that answers.
    static ROLES: RefCell<Option<BTreeSet<u32>>> = const { RefCell::new(None) };
    static IGNORE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    /// While decoding tells of a transaction that runs: how many messages of other sessions had been read when it last
    /// looked.
    static DISREGARD: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
    /// What it told of meanwhile.
    static DISREGARDED: RefCell<Invalidated> = const { RefCell::new(Invalidated::NONE) };
    /// Relations that changed since decoding last asked, among them all whose change it has come by itself.
    static PASSED: RefCell<BTreeSet<RelationId>> = const { RefCell::new(BTreeSet::new()) };
}

static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Increases whenever a relation, or what all depend on, may have been defined anew.
pub fn generation() -> u64 {
    GENERATION.load(Relaxed)
}

/// What was looked up, by what was asked for, as long as nothing may have been defined anew.
pub struct Lookups<K, V>(RefCell<(u64, BTreeMap<K, V>)>);

impl<K: Ord, V: Clone> Lookups<K, V> {
    pub const fn new() -> Lookups<K, V> {
        Lookups(RefCell::new((0, BTreeMap::new())))
    }

    /// What is known of a key, or is looked up now.
    pub fn get<Q>(&self, key: &Q, look_up: impl FnOnce() -> V) -> V
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let generation = generation();
        let known = {
            let (of, known) = &mut *self.0.borrow_mut();
            if *of != generation {
                known.clear();
                *of = generation;
            }
            known.get(key).cloned()
        };
        known.unwrap_or_else(|| {
            let value = look_up();
            self.0.borrow_mut().1.insert(key.to_owned(), value.clone());
            value
        })
    }
}

/// Starts to take notice. Everything counts as changed at first.
pub fn register() {
    // SAFETY: registration of callbacks that live as long as the library.
    unsafe {
        let none = pg_sys::Datum::from(0);
        pg_sys::CacheRegisterRelcacheCallback(Some(on_relcache), none);
        use pg_sys::SysCacheIdentifier::{
            AUTHMEMROLEMEM, AUTHOID, CASTSOURCETARGET, COLLOID, ENUMOID, NAMESPACEOID, OPEROID,
            PROCOID, RELOID, TSCONFIGMAP, TSCONFIGOID, TSDICTOID, TYPEOID,
        };
        for cache in [AUTHOID, AUTHMEMROLEMEM] {
            pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(on_roles), none);
        }
        pg_sys::CacheRegisterSyscacheCallback(NAMESPACEOID as i32, Some(on_schemas), none);
        pg_sys::CacheRegisterSyscacheCallback(PROCOID as i32, Some(on_function), none);
        for cache in [ENUMOID, CASTSOURCETARGET] {
            pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(on_spelling), none);
        }
        for cache in [TSCONFIGMAP, TSCONFIGOID, TSDICTOID] {
            pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(on_search), none);
        }
        for cache in [COLLOID, OPEROID, RELOID, TYPEOID] {
            pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(on_name), none);
        }
    }
}

/// Unguarded: adds to sets.
///
/// # Safety
/// For PostgreSQL to call, as this callback.
unsafe extern "C-unwind" fn on_relcache(_arg: pg_sys::Datum, relid: pg_sys::Oid) {
    GENERATION.fetch_add(1, Relaxed);
    match relid {
        pg_sys::Oid::INVALID => note_all(),
        relid => {
            let relid = RelationId::from(relid);
            note(|relations, _| relations.insert(relid));
            if !IGNORE.get() {
                PASSED.with_borrow_mut(|passed| passed.insert(relid));
            }
        }
    }
}

/// Roles and memberships: any view's owner may have lost a right. Everybody may change a role, the own password, as often as
/// he likes, so this is noted apart from what must be looked at at once.
/// Unguarded: sets variables.
///
/// # Safety
/// For PostgreSQL to call, as this callback.
unsafe extern "C-unwind" fn on_roles(_arg: pg_sys::Datum, cache: i32, hash: u32) {
    GENERATION.fetch_add(1, Relaxed);
    match is_disregarded() {
        _ if IGNORE.get() => {}
        true => DISREGARDED.with_borrow_mut(|noted| *noted = Invalidated::All),
        false => {
            if hash == ANY_ROLE {
                // The message may be one that leads to calls for everything, of which this is the first.
                PENDING.with_borrow_mut(|noted| *noted = Invalidated::All);
            }
            let is_role = cache == pg_sys::SysCacheIdentifier::AUTHOID as i32;
            ROLES.with_borrow_mut(|roles| {
                roles.get_or_insert_default().extend(is_role.then_some(hash));
            });
        }
    }
}

/// In place of a hash value: each role may have changed.
pub const ANY_ROLE: u32 = 0;

/// What any view calls may have another name.
/// Unguarded: adds to sets.
///
/// # Safety
/// For PostgreSQL to call, as this callback.
unsafe extern "C-unwind" fn on_schemas(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    GENERATION.fetch_add(1, Relaxed);
    note_all();
}

/// A function was created, replaced, renamed or dropped; with the hash value 0, any.
/// Unguarded: adds to sets.
///
/// # Safety
/// For PostgreSQL to call, as this callback.
unsafe extern "C-unwind" fn on_function(_arg: pg_sys::Datum, _cache: i32, hash: u32) {
    match hash {
        0 => note_all(),
        hash => {
            note(|_, functions| functions.insert(hash));
            note(|_, functions| functions.insert(NAMES));
        }
    }
}

/// A label of an enum was added or renamed, or a cast came or went: that is as if the function that writes values were
/// another one.
/// Unguarded: adds to a set.
///
/// # Safety
/// For PostgreSQL to call, as this callback.
unsafe extern "C-unwind" fn on_spelling(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    note(|_, functions| functions.insert(SPELLINGS));
}

/// A configuration of text search, or a dictionary, has changed: that is as if the function that uses them were another one.
/// Unguarded: adds to a set.
///
/// # Safety
/// For PostgreSQL to call, as this callback.
unsafe extern "C-unwind" fn on_search(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    note(|_, functions| functions.insert(SEARCHES));
    note(|_, functions| functions.insert(NAMES));
}

/// What has a name was created, renamed or dropped, or changed in another way: that is as if the function that writes names were
/// another one. Changes of functions, of what searches texts, of schemas and of roles are told of elsewhere.
/// Unguarded: adds to a set.
///
/// # Safety
/// For PostgreSQL to call, as this callback.
unsafe extern "C-unwind" fn on_name(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    note(|_, functions| functions.insert(NAMES));
}

/// The functions as changes of which such changes count. They are none of users', and their numbers do as their hash values.
pub const SPELLINGS: u32 = pg_sys::F_ENUM_OUT;
pub const SEARCHES: u32 = pg_sys::F_TO_TSVECTOR_REGCONFIG_TEXT;
pub const NAMES: u32 = pg_sys::F_REGCLASSOUT;
/// As a change of it counts none: what becomes of roles is looked at by itself.
pub const NAMES_OF_ROLES: u32 = pg_sys::F_REGROLEOUT;
/// As a change of it counts none: the tables whose names these are tell of their own.
pub const NAMES_OF_TABLES: u32 = pg_sys::F_REGCLASSSEND;

/// The value by which messages tell of a change of a function.
pub fn hash_of_function(function: u32) -> u32 {
    if [SPELLINGS, SEARCHES, NAMES, NAMES_OF_TABLES, NAMES_OF_ROLES].contains(&function) {
        return function;
    }
    hash_in(pg_sys::SysCacheIdentifier::PROCOID, function)
}

/// The hash value of an object's number as the key of a cache.
fn hash_in(cache: pg_sys::SysCacheIdentifier::Type, object: u32) -> u32 {
    let (key, none) = (pg_sys::Datum::from(object), pg_sys::Datum::from(0));
    // SAFETY: hashes a key of that cache.
    unsafe { pg_sys::GetSysCacheHashValue(cache as i32, key, none, none, none) }
}

fn note(add: impl FnOnce(&mut BTreeSet<RelationId>, &mut BTreeSet<u32>) -> bool) {
    change_noted(|noted| match noted {
        Invalidated::All => {}
        Invalidated::Some { relations, functions } => {
            add(relations, functions);
        }
    });
}

fn note_all() {
    change_noted(|noted| *noted = Invalidated::All);
}

fn change_noted(change: impl FnOnce(&mut Invalidated)) {
    match is_disregarded() {
        _ if IGNORE.get() => {}
        true => DISREGARDED.with_borrow_mut(change),
        false => PENDING.with_borrow_mut(change),
    }
}

/// From now on decoding is within a running transaction. What that does to the catalogs counts when it has committed; to
/// look at it before would mean to wait for its locks.
pub fn disregard() {
    DISREGARD.set(Some(messages_read()));
    DISREGARDED.set(Invalidated::NONE);
}

/// What the running transaction changed since then.
pub fn take_disregarded() -> Invalidated {
    DISREGARDED.replace(Invalidated::NONE)
}

/// A transaction has committed that changed this. All sessions will be told, but whoever reads a view may be sooner.
pub fn note_changed(changed: Invalidated) {
    PENDING.with_borrow_mut(|pending| pending.merge(changed));
}

/// Decoding is outside of running transactions again.
pub fn heed() {
    DISREGARD.set(None);
}

/// Whether it is a running transaction that tells of a change, and not another session, whose messages may be read at any
/// time: their number has grown then. The first call for a message is enough, as one that leads to several says that
/// anything may have changed.
fn is_disregarded() -> bool {
    let Some(before) = DISREGARD.get() else { return false };
    let now = messages_read();
    DISREGARD.set(Some(now));
    now == before
}

/// How many messages of other sessions this process has read.
fn messages_read() -> u64 {
    // SAFETY: a plain global that counts messages read by this process.
    unsafe { pg_sys::SharedInvalidMessageCounter }
}

/// What changed since the last call.
pub fn take() -> Invalidated {
    PENDING.with_borrow_mut(|pending| std::mem::replace(pending, Invalidated::NONE))
}

/// Whether roles or memberships have changed since the last call, and which roles, by the hash values of their numbers.
pub fn take_roles() -> Option<BTreeSet<u32>> {
    ROLES.take()
}

/// Whether there are such changes.
pub fn are_roles_pending() -> bool {
    ROLES.with_borrow(Option::is_some)
}

/// The value by which messages tell of a change of a role.
pub fn hash_of_role(role: u32) -> u32 {
    hash_in(pg_sys::SysCacheIdentifier::AUTHOID, role)
}

/// Relations that decoding has to look at, as they are at the transaction that it has come to.
pub fn take_passed() -> BTreeSet<RelationId> {
    PASSED.take()
}

/// Whether something changed since the last [`take`].
pub fn is_pending() -> bool {
    PENDING.with_borrow(|pending| !pending.is_empty())
}

/// Whether a relation may have changed since the last [`take`].
pub fn may_have_changed(relation: RelationId) -> bool {
    PENDING.with_borrow(|pending| match pending {
        Invalidated::All => true,
        Invalidated::Some { relations, .. } => relations.contains(&relation),
    })
}

/// Reads the messages other sessions sent.
pub fn accept() {
    // SAFETY: on the main thread, outside of any cache operation.
    unsafe { pg_sys::AcceptInvalidationMessages() }
}

/// Keeps decoding and ordinary work from seeing each other's cache entries.
#[derive(Default)]
pub struct Switch {
    messages: u64,
    dirty_until: Option<u64>,
}

impl Switch {
    /// To be called before decoding.
    pub fn before_decoding(&mut self) {
        accept();
        self.note_messages();
        if self.dirty_until.is_some() {
            empty_caches();
        }
    }

    /// To be called after decoding has read everything up to `position`.
    pub fn after_decoding(&mut self, position: u64) {
        // Those that were read meanwhile are not read again, and what decoding has loaded since may be older.
        self.note_messages();
        if let Some(until) = self.dirty_until {
            empty_caches();
            if position >= until {
                self.dirty_until = None;
            }
        }
    }

    fn note_messages(&mut self) {
        let messages = messages_read();
        if messages != self.messages {
            self.messages = messages;
            self.dirty_until = Some(wal::insert_lsn());
        }
    }
}

/// Empties the caches. Outside of any cache operation only.
pub fn empty_caches() {
    IGNORE.set(true);
    // SAFETY: outside of any cache operation.
    unsafe { pg_sys::InvalidateSystemCaches() }
    IGNORE.set(false);
}

/// Counts everything as changed.
pub fn mark_all() {
    GENERATION.fetch_add(1, Relaxed);
    note_all();
}
