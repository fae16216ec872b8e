//! Which SQL objects a library goes with: those of its own version and of all before it, as what they call stays in it.

/// How the SQL objects of a database stand to the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objects {
    Same,
    /// They work as they did; `ALTER EXTENSION … UPDATE` brings what is new.
    Earlier,
    /// Nobody knows what they expect.
    Later,
}

/// What objects of a version are for a library of another. A version that cannot be read may be anything later.
pub fn compare(objects: &str, library: &str) -> Objects {
    match (parse(objects), parse(library)) {
        _ if objects == library => Objects::Same,
        (Some(objects), Some(library)) if objects < library => Objects::Earlier,
        _ => Objects::Later,
    }
}

fn parse(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_objects_are_known() {
        assert_eq!(compare("0.2.0", "0.2.0"), Objects::Same);
        assert_eq!(compare("0.1.0", "0.2.0"), Objects::Earlier);
        assert_eq!(compare("0.9.3", "0.10.0"), Objects::Earlier);
    }

    #[test]
    fn later_and_unreadable_objects_are_not() {
        assert_eq!(compare("0.10.0", "0.9.3"), Objects::Later);
        assert_eq!(compare("1.0.0", "0.2.0"), Objects::Later);
        assert_eq!(compare("next", "0.2.0"), Objects::Later);
    }
}
