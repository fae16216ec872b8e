//! Rows of functions that SQL reads, filled by the names of the columns that are asked for.
//!
//! The SQL objects of a database may be older than the library: after an update of the library, until
//! `ALTER EXTENSION pg_eddy UPDATE`. So a function puts into each column what has its name and type, and leaves out
//! what nobody has declared; a column that it does not know is null.

use super::{strings, times};
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pg_sys::{self, Datum, Oid};
use pgrx::IntoDatum;
use std::ffi::{c_char, CString};

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `oid`, `regclass`
    Oid(u32),
    /// `pg_lsn`
    Lsn(u64),
    /// `timestamptz`
    Time(i64),
    /// `integer`
    Integer(i32),
    /// `bigint`
    Count(u64),
    /// `double precision`
    Number(f64),
    /// `text`
    Text(String),
    /// `smallint[]`
    Columns(Vec<i16>),
    /// `oid[]`
    Oids(Vec<u32>),
}

/// The columns of one row that have a value, by name.
pub type Row = Vec<(&'static str, Option<Value>)>;

/// The call of a function that returns rows.
pub struct Call(pg_sys::FunctionCallInfo);

// SAFETY: takes no argument; the call outlives its own function.
unsafe impl<'fcx> ArgAbi<'fcx> for Call {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the virtual argument is there as `FunctionCallInfo`, too.
        Call(unsafe { pg_sys::FunctionCallInfo::unbox_arg_unchecked(arg) })
    }

    fn is_virtual_arg() -> bool {
        true
    }
}

pgrx::impl_sql_translatable!(Call, "internal");

extern "C-unwind" {
    /// Exported by the server, missing in the bindings. Raises errors: call it guarded.
    #[link_name = "SetTuplestoreDestReceiverParams"]
    fn set_destination(
        dest: *mut pg_sys::DestReceiver,
        store: *mut pg_sys::Tuplestorestate,
        memory: pg_sys::MemoryContext,
        detoast: bool,
        descriptor: pg_sys::TupleDesc,
        mismatch: *const c_char,
    );
}

impl Call {
    /// The type of an argument, where that of its parameter leaves it open.
    pub fn argument_type(&self, index: i32) -> Oid {
        // SAFETY: the call of a function that was looked up.
        unsafe { pg_sys::get_fn_expr_argtype((*self.0).flinfo, index) }
    }

    /// An argument that is passed by value; `None` for NULL.
    pub fn argument(&self, index: usize) -> Option<u64> {
        // SAFETY: the call has so many arguments as its function was declared with.
        unsafe {
            let arguments = (*self.0).args.as_slice((*self.0).nargs as usize);
            arguments.get(index).filter(|it| !it.isnull).map(|it| it.value.value() as u64)
        }
    }

    /// The name of the table whose trigger makes the call, if one does.
    pub fn table_of_trigger(&self) -> Option<String> {
        // SAFETY: the context of a call by a trigger says which one it is, of an open relation.
        unsafe {
            let context = (*self.0).context;
            if context.is_null() || (*context).type_ != pg_sys::NodeTag::T_TriggerData {
                return None;
            }
            let table = (*context.cast::<pg_sys::TriggerData>()).tg_relation;
            Some(strings::owned((*(*table).rd_rel).relname.data.as_ptr()))
        }
    }

    /// An argument that is an interval, in microseconds; `None` for NULL.
    pub fn interval(&self, index: usize) -> Option<i64> {
        let value = self.argument(index)? as *const pg_sys::Interval;
        // SAFETY: the function was declared with an interval there.
        Some(times::micros(unsafe { *value }))
    }

    /// Answers with the rows of a query under the active snapshot, which has the columns that are asked for; the current user runs it.
    pub fn answer_query(&self, query: &str) {
        let query = CString::new(query).unwrap_or_default();
        // SAFETY: the call of a set-returning function; rows are copied into the result, which outlives SPI.
        unsafe {
            pg_sys::InitMaterializedSRF(self.0, 0);
            let result = (*self.0).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            pg_sys::SPI_connect();
            let dest = pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestTuplestore);
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                set_destination(
                    dest,
                    (*result).setResult,
                    (*(*result).econtext).ecxt_per_query_memory,
                    false,
                    (*result).setDesc,
                    c"the query has other columns than the function".as_ptr(),
                );
            });
            let options = pg_sys::SPIExecuteOptions { read_only: true, dest, ..Default::default() };
            pg_sys::SPI_execute_extended(query.as_ptr(), &options);
            pg_sys::SPI_finish();
        }
    }

    /// Answers with these rows.
    pub fn answer(self, rows: &[Row]) {
        // SAFETY: the call of a set-returning function, whose result is made as PostgreSQL's own are. Values are copied
        // into the result, and have the types of its columns.
        unsafe {
            pg_sys::InitMaterializedSRF(self.0, 0);
            let result = (*self.0).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            let (store, descriptor) = ((*result).setResult, (*result).setDesc);
            for row in rows {
                let (mut values, mut nulls) = form(descriptor, row);
                pg_sys::tuplestore_putvalues(
                    store,
                    descriptor,
                    values.as_mut_ptr(),
                    nulls.as_mut_ptr(),
                );
            }
        }
    }
}

/// The values of a row in the order of the columns that are asked for.
///
/// # Safety
/// A descriptor that lives.
unsafe fn form(descriptor: pg_sys::TupleDesc, row: &Row) -> (Vec<Datum>, Vec<bool>) {
    // SAFETY: per contract.
    let count = unsafe { (*descriptor).natts };
    let column = |number: i32| {
        // SAFETY: the number of a column of the descriptor; its name is a copy.
        let (name, ty) = unsafe {
            let name = strings::owned(pg_sys::SPI_fname(descriptor, number));
            (name, pg_sys::SPI_gettypeid(descriptor, number))
        };
        let named = row.iter().find(|(known, _)| *known == name)?;
        named.1.clone().and_then(|value| datum(value, ty))
    };
    let datums: Vec<Option<Datum>> = (1..=count).map(column).collect();
    let nulls = datums.iter().map(Option::is_none).collect();
    (datums.into_iter().map(|datum| datum.unwrap_or(Datum::from(0))).collect(), nulls)
}

/// A value as a column of that type has it; `None` where the column has another type.
fn datum(value: Value, ty: Oid) -> Option<Datum> {
    match (value, ty) {
        (Value::Oid(oid), pg_sys::OIDOID | pg_sys::REGCLASSOID) => Some(Datum::from(oid)),
        (Value::Lsn(lsn), pg_sys::PG_LSNOID) => Some(Datum::from(lsn)),
        (Value::Time(time), pg_sys::TIMESTAMPTZOID) => Some(Datum::from(time)),
        (Value::Integer(number), pg_sys::INT4OID) => number.into_datum(),
        (Value::Count(count), pg_sys::INT8OID) => i64::try_from(count).ok().into_datum(),
        (Value::Number(number), pg_sys::FLOAT8OID) => number.into_datum(),
        (Value::Text(text), pg_sys::TEXTOID) => text.into_datum(),
        (Value::Columns(numbers), pg_sys::INT2ARRAYOID) => numbers.into_datum(),
        (Value::Oids(oids), pg_sys::OIDARRAYOID) => {
            oids.into_iter().map(Oid::from).collect::<Vec<Oid>>().into_datum()
        }
        _ => None,
    }
}
