//! A company with its files: who is in which groups, which folders are in which, what rules there are, and
//! how that changes.
//!
//! Groups are in groups that come before them, so that most persons act as several. Folders are a tree of three
//! levels. Most rules let a group into a folder of the lowest level; some forbid it a file or a folder, and persons
//! have rules of their own. What is taken away is given back much later, so that the company keeps its size, and
//! changes that a worker sees at once do not cancel out.

use std::collections::{HashSet, VecDeque};

use harness::dice::Dice;

#[derive(Clone, Copy)]
pub struct Sizes {
    pub persons: i32,
    pub groups: i32,
    /// Folders at the top, and in each folder of the upper two levels.
    pub folders: i32,
    pub files: i32,
    pub watched: usize,
}

/// Groups that a person is in directly.
const MEMBERSHIPS: usize = 3;

/// Of a file, or of a folder.
#[derive(Clone, Copy)]
pub enum Governed {
    Folder(i32),
    File(i32),
}

#[derive(Clone, Copy)]
pub struct Rule {
    pub id: i32,
    pub principal: i32,
    pub governed: Governed,
    pub allows: bool,
}

/// Who is in a group, a person or a group, and in which.
pub type Membership = (i32, i32);

/// Those of persons, or those of groups. A share of them is away at any time.
#[derive(Clone, Default)]
pub struct Memberships {
    pub held: Vec<Membership>,
    /// Revoked, the longest ago first.
    away: VecDeque<Membership>,
    usually_away: usize,
}

/// One of so many memberships is away.
const AWAY: usize = 5;

#[derive(Clone)]
pub struct Company {
    pub dice: Dice,
    pub sizes: Sizes,
    pub of_persons: Memberships,
    pub of_groups: Memberships,
    pub rules: Vec<Rule>,
    usual_rules: usize,
    next_rule: i32,
    /// Of each folder from 1 on; 0 at the top.
    pub parents: Vec<i32>,
    pub watched: Vec<(i32, i32)>,
}

impl Company {
    pub fn new(sizes: Sizes, seed: u64) -> Company {
        let mut company = Company {
            dice: Dice::new(seed),
            sizes,
            of_persons: Memberships::default(),
            of_groups: Memberships::default(),
            rules: Vec::new(),
            usual_rules: 0,
            next_rule: 1,
            parents: Vec::new(),
            watched: Vec::new(),
        };
        company.fill_groups();
        for folder in 1..=company.folders() {
            let parent = if folder > sizes.folders { (folder - 1) / sizes.folders } else { 0 };
            company.parents.push(parent);
        }
        for group in 1..=sizes.groups {
            company.add_rule_of(sizes.persons + group);
        }
        for person in (1..=sizes.persons).step_by(2) {
            company.add_rule_of(person);
        }
        company.usual_rules = company.rules.len();
        let mut watched = HashSet::new();
        while watched.len() < sizes.watched {
            let pair = (company.person(), company.file());
            if watched.insert(pair) {
                company.watched.push(pair);
            }
        }
        company
    }

    fn fill_groups(&mut self) {
        let Sizes { persons, groups, .. } = self.sizes;
        let tops = (groups / 10).max(1);
        let (mut of_persons, mut of_groups) = (Vec::new(), Vec::new());
        for person in 1..=persons {
            let mut own = HashSet::new();
            while own.len() < MEMBERSHIPS.min(groups as usize) {
                let group = self.group();
                if own.insert(group) {
                    of_persons.push((person, group));
                }
            }
        }
        for group in tops + 1..=groups {
            let outer = self.dice.range(1, i64::from(group - 1)) as i32;
            of_groups.push((persons + group, persons + outer));
        }
        self.of_persons = Memberships::new(of_persons, &mut self.dice);
        self.of_groups = Memberships::new(of_groups, &mut self.dice);
    }

    pub fn folders(&self) -> i32 {
        let width = self.sizes.folders;
        width + width * width + width * width * width
    }

    /// The folder that a file is in: each has as many.
    pub fn folder_of(&self, file: i32) -> i32 {
        1 + file % self.folders()
    }

    pub fn person(&mut self) -> i32 {
        self.dice.range(1, i64::from(self.sizes.persons)) as i32
    }

    fn group(&mut self) -> i32 {
        self.sizes.persons + self.dice.range(1, i64::from(self.sizes.groups)) as i32
    }

    pub fn file(&mut self) -> i32 {
        self.dice.range(1, i64::from(self.sizes.files)) as i32
    }

    /// One of the lowest level as a rule, else of the one above.
    fn folder(&mut self, share_of_lowest: u32) -> i32 {
        let width = self.sizes.folders;
        let (first, last) = match self.dice.chance(share_of_lowest) {
            true => (width + width * width + 1, self.folders()),
            false => (width + 1, width + width * width),
        };
        self.dice.range(i64::from(first), i64::from(last)) as i32
    }

    fn add_rule_of(&mut self, principal: i32) -> Rule {
        let is_group = principal > self.sizes.persons;
        let allows = self.dice.chance(85);
        // What is forbidden is less than what is allowed.
        let governed = match self.dice.chance(if is_group && allows { 95 } else { 40 }) {
            true => Governed::Folder(self.folder(95)),
            false => Governed::File(self.file()),
        };
        let rule = Rule { id: self.next_rule, principal, governed, allows };
        self.next_rule += 1;
        self.rules.push(rule);
        rule
    }

    // ---- what happens ------------------------------------------------------------------------

    /// The statement of the next change.
    pub fn next_change(&mut self) -> String {
        match self.dice.range(1, 100) {
            1..=60 => self.of_persons.next_change(&mut self.dice),
            61..=64 => self.of_groups.next_change(&mut self.dice),
            65..=94 => self.change_rules(),
            _ => self.move_folder(),
        }
    }

    /// Adds one or removes one, in turn.
    fn change_rules(&mut self) -> String {
        if self.rules.len() > self.usual_rules {
            let rule = self.rules.swap_remove(self.dice.index(self.rules.len()));
            return format!("DELETE FROM rule WHERE id = {}", rule.id);
        }
        // Of groups there are as many as there were in the beginning.
        let principal = if self.dice.chance(17) { self.group() } else { self.person() };
        let rule = self.add_rule_of(principal);
        format!("INSERT INTO rule VALUES ({})", rule.columns("NULL").join(", "))
    }

    /// Into another one of the level above.
    fn move_folder(&mut self) -> String {
        let width = self.sizes.folders;
        let folder = self.folder(90);
        let (first, last) = match folder > width + width * width {
            true => (width + 1, width + width * width),
            false => (1, width),
        };
        let parent = self.dice.range(i64::from(first), i64::from(last)) as i32;
        self.parents[folder as usize - 1] = parent;
        format!("UPDATE folder SET parent = {parent} WHERE id = {folder}")
    }
}

impl Memberships {
    fn new(all: Vec<Membership>, dice: &mut Dice) -> Memberships {
        let usually_away = all.len() / AWAY;
        let mut memberships = Memberships { held: all, away: VecDeque::new(), usually_away };
        for _ in 0..usually_away {
            memberships.revoke(dice);
        }
        memberships
    }

    /// Revokes one or grants one, in turn.
    fn next_change(&mut self, dice: &mut Dice) -> String {
        if self.away.len() <= self.usually_away {
            return revocation(self.revoke(dice));
        }
        let membership = self.away.pop_front().expect("more are away than usually");
        self.held.push(membership);
        grant(membership)
    }

    fn revoke(&mut self, dice: &mut Dice) -> Membership {
        let membership = self.held.swap_remove(dice.index(self.held.len()));
        self.away.push_back(membership);
        membership
    }
}

pub fn revocation((member, group): Membership) -> String {
    format!("DELETE FROM member WHERE member = {member} AND grp = {group}")
}

pub fn grant((member, group): Membership) -> String {
    format!("INSERT INTO member VALUES ({member}, {group})")
}

impl Rule {
    pub fn columns(&self, null: &str) -> [String; 5] {
        let (folder, file) = match self.governed {
            Governed::Folder(folder) => (folder.to_string(), null.to_owned()),
            Governed::File(file) => (null.to_owned(), file.to_string()),
        };
        [self.id.to_string(), self.principal.to_string(), folder, file, self.allows.to_string()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { persons: 50, groups: 10, folders: 3, files: 400, watched: 20 };

    #[test]
    fn a_company_goes_on_in_one_way_and_keeps_its_size() {
        let mut one = Company::new(SIZES, 1);
        let mut other = one.clone();
        let (members, rules) = (one.of_persons.held.len(), one.rules.len());
        let mut all = String::new();
        for _ in 0..2000 {
            let change = one.next_change();
            assert_eq!(change, other.next_change());
            all += &change;
        }
        for word in ["INTO member", "FROM member", "INTO rule", "FROM rule", "UPDATE folder"] {
            assert!(all.contains(word), "{word} never comes");
        }
        assert!(one.of_persons.held.len().abs_diff(members) <= 1);
        assert!(one.rules.len().abs_diff(rules) <= 1);
    }

    #[test]
    fn folders_are_a_tree() {
        let mut company = Company::new(SIZES, 1);
        for _ in 0..500 {
            company.move_folder();
        }
        for folder in 1..=company.folders() {
            let (mut at, mut steps) = (folder, 0);
            while at != 0 {
                (at, steps) = (company.parents[at as usize - 1], steps + 1);
                assert!(steps <= 3, "folder {folder} is too deep");
            }
        }
    }
}
