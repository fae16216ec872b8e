//! The names of roles, and which of them are others than they were: anybody may have the worker told that a role has changed, but few
//! may change a name.

use super::strings::owned;
use super::{inval, quiet};
use pgrx::pg_sys::{self, Oid};
use pgrx::spi::{self, Spi};
use std::collections::{BTreeMap, BTreeSet};

/// The names when they were last read, by the numbers of roles, and the roles by the hash values by which messages tell of them.
/// Nothing before that.
#[derive(Debug, Default)]
pub struct RoleNames(Option<Known>);

#[derive(Debug)]
struct Known {
    names: BTreeMap<u32, String>,
    roles: BTreeMap<u32, Vec<u32>>,
}

/// What has become of names.
#[derive(Debug, PartialEq, Eq)]
pub enum NameChanges {
    None,
    /// Roles have come or gone, or have got other names, which these have.
    Some {
        renamed: BTreeSet<u32>,
    },
    /// It is not known what they were.
    Unknown,
}

impl RoleNames {
    /// What has become of the names of roles of which messages told, by these hash values. Needs a transaction.
    pub fn follow(&mut self, changed: &BTreeSet<u32>) -> NameChanges {
        if let Some(known) = &self.0 {
            if changed.iter().all(|hash| known.are_same(*hash)) {
                return NameChanges::None;
            }
        }
        let Ok(now) = Known::read() else {
            self.0 = None;
            return NameChanges::Unknown;
        };
        match self.0.replace(now) {
            Some(before) => NameChanges::Some { renamed: self.renamed_since(&before) },
            None => NameChanges::Unknown,
        }
    }

    fn renamed_since(&self, before: &Known) -> BTreeSet<u32> {
        let is_renamed = |(role, name): &(&u32, &String)| {
            before.names.get(role).is_some_and(|before| before != *name)
        };
        let names = self.0.iter().flat_map(|known| known.names.iter());
        names.filter(is_renamed).map(|(role, _)| *role).collect()
    }
}

impl Known {
    fn read() -> Result<Known, spi::Error> {
        let query = "SELECT oid, rolname::pg_catalog.text FROM pg_catalog.pg_authid";
        let names = quiet::look_up(|| {
            Spi::connect(|client| {
                let rows = client.select(query, None, &[])?;
                rows.map(|row| Ok((row.get::<Oid>(1)?, row.get::<String>(2)?)))
                    .collect::<Result<Vec<_>, spi::Error>>()
            })
        })?;
        let complete = |(role, name): (Option<Oid>, Option<String>)| Some((role?.to_u32(), name?));
        let names: BTreeMap<u32, String> = names.into_iter().filter_map(complete).collect();
        let mut roles: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for role in names.keys() {
            roles.entry(inval::hash_of_role(*role)).or_default().push(*role);
        }
        Ok(Known { names, roles })
    }

    /// Whether the roles with a hash value are still there, and are called as before. Another one may have come that has the same
    /// hash value, which is only seen where all that views show is compared.
    fn are_same(&self, hash: u32) -> bool {
        let is_same = |role: &u32| name_of(*role).as_ref() == self.names.get(role);
        hash != inval::ANY_ROLE
            && self.roles.get(&hash).is_some_and(|roles| roles.iter().all(is_same))
    }
}

fn name_of(role: u32) -> Option<String> {
    // SAFETY: a palloc'd name, or null for a role that is gone.
    unsafe {
        let name = pg_sys::GetUserNameFromId(role.into(), true);
        (!name.is_null()).then(|| owned(name))
    }
}
