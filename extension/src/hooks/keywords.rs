//! Replaces the scanner's keyword table by one that also knows `incremental`.
//!
//! PostgreSQL has no grammar hook. Its scanner looks words up in the exported struct `ScanKeywords`:
//! a perfect hash gives a slot, the slot's text is compared with the word, and the slot's number is
//! the token. Our table's hash maps `incremental` to the slot of MATERIALIZED and, at each lookup, flips
//! that slot's text offset to the spelling that was looked up. So each word matches its own text,
//! both yield the same token, and an identifier keeps its own spelling. Only data is replaced.
//!
//! Behind `CREATE OR REPLACE` the grammar has no materialized views. There the word is a second spelling of UNLOGGED, which the
//! grammar has and PostgreSQL refuses for every view ([`super::replacement`]).

use pgrx::pg_sys;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;

/// The new word.
const WORD: &[u8] = b"incremental";

/// The words whose slots it shares: the second one behind [`BEFORE_SECOND`].
const STOCK: [&CStr; 2] = [c"materialized", c"unlogged"];
const BEFORE_SECOND: [&[u8]; 3] = [b"create", b"or", b"replace"];

type HashFn = unsafe extern "C-unwind" fn(*const c_void, usize) -> c_int;

/// A shared slot of the leaked table.
#[derive(Clone, Copy)]
struct Slot {
    /// Where the slot's text offset is stored.
    offset: *mut u16,
    /// Number of the slot.
    index: c_int,
    /// Offset of its own spelling.
    stock: u16,
}

/// The leaked table.
struct Table {
    slots: [Slot; 2],
    /// Offset of the new spelling.
    word: u16,
    /// The server's own hash function.
    hash: HashFn,
}

// SAFETY: the pointers refer to leaked memory that only the scanner's thread, the main thread, uses.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

static TABLE: OnceLock<Table> = OnceLock::new();

/// How many words of [`BEFORE_SECOND`] have been looked up last.
static SEEN: AtomicUsize = AtomicUsize::new(0);

/// Called for every identifier the core scanner sees: no allocation, no server calls.
/// Unguarded: it raises nothing.
///
/// # Safety
/// For PostgreSQL's scanner to call, as the hash function of our table.
unsafe extern "C-unwind" fn hash(key: *const c_void, len: usize) -> c_int {
    let table = TABLE.get().expect("it is installed after it is set");
    // SAFETY: the scanner passes `len` readable bytes; the offsets are the leaked table's.
    unsafe {
        let word = std::slice::from_raw_parts(key.cast::<u8>(), len);
        let seen = SEEN.load(Relaxed);
        SEEN.store(seen_after(seen, word), Relaxed);
        table.slots.iter().for_each(|slot| *slot.offset = slot.stock);
        if word.eq_ignore_ascii_case(WORD) {
            let slot = table.slots[usize::from(seen == BEFORE_SECOND.len())];
            *slot.offset = table.word;
            return slot.index;
        }
        (table.hash)(key, len)
    }
}

/// How many words of [`BEFORE_SECOND`] have been looked up last, when another one is.
fn seen_after(seen: usize, word: &[u8]) -> usize {
    let is = |place: usize| {
        BEFORE_SECOND.get(place).is_some_and(|expected| word.eq_ignore_ascii_case(expected))
    };
    match (is(seen), is(0)) {
        (true, _) => seen + 1,
        (false, is_first) => is_first.into(),
    }
}

/// Installs the word. `Err` says why not; the server's own table is then in place.
pub fn install() -> Result<(), &'static str> {
    // SAFETY: looks up an exported data symbol of the running server.
    let table = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"ScanKeywords".as_ptr()) }
        .cast::<pg_sys::ScanKeywordList>();
    if table.is_null() {
        return Err("the server does not export its keyword table");
    }
    // SAFETY: the symbol is the server's keyword table, readable for the life of the process.
    let stock = unsafe { table.read() };
    let new = build(&stock)?;
    replace(table, &new)?;
    if parses_the_word() {
        return Ok(());
    }
    replace(table, &stock)?;
    Err("the server's parser does not accept the new keyword")
}

/// A table like `stock` with the shared slots; leaked, as the scanner keeps it for good.
fn build(stock: &pg_sys::ScanKeywordList) -> Result<pg_sys::ScanKeywordList, &'static str> {
    let hash_fn = stock.hash.ok_or(LAYOUT)?;
    let count = usize::try_from(stock.num_keywords).map_err(|_| LAYOUT)?;
    // SAFETY: the table has `num_keywords` offsets into one text of NUL-terminated words, the last
    // word at the last offset.
    let (offsets, mut text) = unsafe {
        let offsets = std::slice::from_raw_parts(stock.kw_offsets, count).to_vec();
        let last = *offsets.last().ok_or(LAYOUT)? as usize;
        let length = last + CStr::from_ptr(stock.kw_string.add(last)).count_bytes() + 1;
        (offsets, std::slice::from_raw_parts(stock.kw_string.cast::<u8>(), length).to_vec())
    };
    let word = u16::try_from(text.len()).map_err(|_| LAYOUT)?;
    let offsets: &mut [u16] = Vec::leak(offsets);
    let [first, second] = STOCK.map(|shared| find(shared, hash_fn, offsets, &text));
    text.extend_from_slice(WORD);
    text.push(0);
    let text = Box::leak(text.into_boxed_slice());
    TABLE
        .set(Table { slots: [first?, second?], word, hash: hash_fn })
        .map_err(|_| "the keyword is installed already")?;
    Ok(pg_sys::ScanKeywordList {
        kw_string: text.as_ptr().cast::<c_char>(),
        kw_offsets: offsets.as_ptr(),
        hash: Some(hash),
        ..*stock
    })
}

const LAYOUT: &str = "the server's keyword table has an unknown layout";

/// The slot of a word that the server knows.
fn find(word: &CStr, hash: HashFn, offsets: &mut [u16], text: &[u8]) -> Result<Slot, &'static str> {
    // SAFETY: the hash function takes any bytes.
    let index = unsafe { hash(word.as_ptr().cast(), word.count_bytes()) };
    let place = usize::try_from(index).map_err(|_| LAYOUT)?;
    let offset = offsets.get_mut(place).ok_or(LAYOUT)?;
    if !text[*offset as usize..].starts_with(word.to_bytes_with_nul()) {
        return Err(LAYOUT);
    }
    Ok(Slot { index, stock: *offset, offset })
}

/// Overwrites the server's struct, which lies in pages made read-only after relocation.
fn replace(
    table: *mut pg_sys::ScanKeywordList,
    new: &pg_sys::ScanKeywordList,
) -> Result<(), &'static str> {
    // SAFETY: the pages of the struct are made writable for the write alone; only this thread exists
    // in the postmaster, and the struct is plain data.
    unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let start = table as usize & !(page - 1);
        let end = (table as usize + size_of_val(new) + page - 1) & !(page - 1);
        let former = protection_of(table as usize);
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        if libc::mprotect(start as *mut c_void, end - start, rw) != 0 {
            return Err("the server's keyword table cannot be made writable");
        }
        table.write(*new);
        libc::mprotect(start as *mut c_void, end - start, former);
    }
    Ok(())
}

/// Protection of the page at an address, as /proc/self/maps tells it; read-only if it does not.
fn protection_of(address: usize) -> c_int {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for line in maps.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(range), Some(mode)) = (fields.next(), fields.next()) else { continue };
        let Some((low, high)) = range.split_once('-') else { continue };
        let (Ok(low), Ok(high)) = (usize::from_str_radix(low, 16), usize::from_str_radix(high, 16))
        else {
            continue;
        };
        if (low..high).contains(&address) {
            let bit = |c, flag| if mode.contains(c) { flag } else { 0 };
            return bit('r', libc::PROT_READ)
                | bit('w', libc::PROT_WRITE)
                | bit('x', libc::PROT_EXEC);
        }
    }
    libc::PROT_READ
}

/// Runs the real parser over both statements; an error of it does not escape.
fn parses_the_word() -> bool {
    let texts = [
        c"CREATE INCREMENTAL VIEW v AS SELECT 1",
        c"CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT 1",
    ];
    let parses = |text: &CStr| {
        // SAFETY: the parser needs nothing but a memory context, which exists during preload.
        let list =
            unsafe { pg_sys::raw_parser(text.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT) };
        // SAFETY: the parser returns a list or null.
        !list.is_null() && unsafe { (*list).length } == 1
    };
    pg_sys::PgTryBuilder::new(move || texts.into_iter().all(parses))
        .catch_others(|_| false)
        .execute()
}
