//! Which job gets one of the few places for assistants: what one owner's functions do must not keep the views of others
//! from being written or evaluated.

/// What an assistant is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Functions of users are run, some rows at a time.
    Evaluate,
    /// Rows are written, and functions of users run for indexes: it may take long.
    WriteWithCode,
    Write,
}

/// Somebody who has a place or wants one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub kind: Kind,
    /// Whose view it is for.
    pub owner: u32,
}

/// Places for what runs functions of users; beside them there is one that they never take.
const WITH_CODE: usize = 2;

/// The places of one worker.
#[derive(Debug, Default)]
pub struct Places {
    running: Vec<Claim>,
    waiting: Vec<Claim>,
}

impl Places {
    pub fn new(running: Vec<Claim>, waiting: Vec<Claim>) -> Places {
        Places { running, waiting }
    }

    /// Whether there is one. Owners share: nobody has two places to evaluate while somebody else waits for one.
    pub fn have_one_for(&self, claim: Claim) -> bool {
        let count = |kind| self.running.iter().filter(|claim| claim.kind == kind).count();
        let with_code = count(Kind::Evaluate) + count(Kind::WriteWithCode);
        match claim.kind {
            Kind::Write => count(Kind::Write) == 0,
            Kind::WriteWithCode => with_code < WITH_CODE && count(Kind::WriteWithCode) == 0,
            Kind::Evaluate => {
                let is_other =
                    |other: &Claim| other.kind == claim.kind && other.owner != claim.owner;
                let is_shared = self.running.contains(&claim) && self.waiting.iter().any(is_other);
                with_code < WITH_CODE && !is_shared
            }
        }
    }

    pub fn take(&mut self, claim: Claim) {
        self.running.push(claim);
    }

    pub fn give_back(&mut self, claim: Claim) {
        if let Some(index) = self.running.iter().position(|running| *running == claim) {
            self.running.swap_remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(kind: Kind, owner: u32) -> Claim {
        Claim { kind, owner }
    }

    #[test]
    fn rows_without_code_are_written_beside_all_code() {
        use Kind::*;
        let mut places = Places::default();
        places.take(claim(WriteWithCode, 1));
        assert!(!places.have_one_for(claim(WriteWithCode, 2)));
        places.take(claim(Evaluate, 1));
        assert!(!places.have_one_for(claim(Evaluate, 2)));
        assert!(places.have_one_for(claim(Write, 2)));
        places.take(claim(Write, 2));
        assert!(!places.have_one_for(claim(Write, 3)));
        places.give_back(claim(WriteWithCode, 1));
        assert!(places.have_one_for(claim(WriteWithCode, 2)));
        assert!(places.have_one_for(claim(Evaluate, 2)));
    }

    #[test]
    fn owners_share_the_places_to_evaluate() {
        let (mine, yours) = (claim(Kind::Evaluate, 1), claim(Kind::Evaluate, 2));
        let alone = Places::new(vec![mine], vec![mine, mine]);
        assert!(alone.have_one_for(mine));
        let together = Places::new(vec![mine], vec![mine, yours]);
        assert!(!together.have_one_for(mine));
        assert!(together.have_one_for(yours));
    }
}
