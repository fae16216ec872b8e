//! A social network of the contest's sizes, and how it goes on.
//!
//! The sizes are the contest's own, for each of its scale factors. How they are spread is drawn after its
//! data, whose figures at factor 256 are beside ours in the test below: friends of friends become friends, and who
//! has many gets more; a comment is liked by friends of its author, a few by very many, most by nobody.

use std::collections::HashSet;

use harness::dice::Dice;

/// Rows at a scale factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub factor: u32,
    pub persons: usize,
    pub posts: usize,
    pub comments: usize,
    pub likes: usize,
    pub friendships: usize,
}

const fn sizes(
    factor: u32,
    persons: usize,
    posts: usize,
    comments: usize,
    likes: usize,
    friendships: usize,
) -> Sizes {
    Sizes { factor, persons, posts, comments, likes, friendships }
}

/// Those of the contest's initial data.
pub const SIZES: [Sizes; 9] = [
    sizes(1, 80, 554, 640, 6, 53),
    sizes(2, 118, 889, 1_064, 24, 102),
    sizes(4, 190, 1_845, 2_315, 66, 262),
    sizes(8, 204, 2_270, 5_056, 129, 298),
    sizes(16, 394, 5_518, 9_220, 572, 904),
    sizes(32, 595, 10_929, 18_872, 1_598, 1_827),
    sizes(64, 781, 18_083, 39_212, 4_770, 2_752),
    sizes(128, 1_158, 37_228, 76_735, 13_374, 5_695),
    sizes(256, 1_678, 74_668, 148_470, 36_815, 11_118),
];

/// Most comments below a post.
const THREAD: i64 = 20;

/// A post, or a comment on a post or a comment. Their numbers grow with time.
#[derive(Clone, Debug)]
pub struct Submission {
    pub id: u64,
    pub author: u32,
    /// What a comment is on.
    pub parent: Option<u64>,
    /// How much is written, in words.
    pub words: usize,
}

/// Pairs in an order that depends on the dice alone, of which any can be drawn.
#[derive(Clone, Default)]
pub struct Pairs<A, B> {
    pub all: Vec<(A, B)>,
    known: HashSet<(A, B)>,
}

impl<A: Copy + Eq + std::hash::Hash, B: Copy + Eq + std::hash::Hash> Pairs<A, B> {
    /// False if it is there already.
    fn insert(&mut self, pair: (A, B)) -> bool {
        let is_new = self.known.insert(pair);
        if is_new {
            self.all.push(pair);
        }
        is_new
    }

    fn take_any(&mut self, dice: &mut Dice) -> Option<(A, B)> {
        if self.all.is_empty() {
            return None;
        }
        let pair = self.all.swap_remove(dice.index(self.all.len()));
        self.known.remove(&pair);
        Some(pair)
    }
}

#[derive(Clone)]
pub struct Network {
    pub dice: Dice,
    pub persons: u32,
    /// The smaller number first.
    pub friendships: Pairs<u32, u32>,
    friends: Vec<Vec<u32>>,
    pub posts: Vec<Submission>,
    pub comments: Vec<Submission>,
    /// Person and comment.
    pub likes: Pairs<u32, u64>,
    next_id: u64,
}

impl Network {
    pub fn new(sizes: Sizes, seed: u64) -> Network {
        let mut network = Network {
            dice: Dice::new(seed),
            persons: u32::try_from(sizes.persons).expect("sizes are small"),
            friendships: Pairs::default(),
            friends: vec![Vec::new(); sizes.persons + 1],
            posts: Vec::new(),
            comments: Vec::new(),
            likes: Pairs::default(),
            next_id: 1,
        };
        while network.friendships.all.len() < sizes.friendships {
            network.befriend();
        }
        network.write(sizes);
        while network.likes.all.len() < sizes.likes {
            network.like_by_many(sizes.likes);
        }
        network
    }

    /// Posts with the comments on them, as many as there are to be; most posts have none.
    fn write(&mut self, sizes: Sizes) {
        let average = (1 + THREAD) as usize / 2;
        let share = (100 * sizes.comments / average / sizes.posts).max(1) as u32;
        for remaining in (0..sizes.posts).rev() {
            self.post();
            let missing = sizes.comments - self.comments.len();
            let drawn = match self.dice.chance(share) {
                true => self.dice.range(1, THREAD) as usize,
                false => 0,
            };
            let number = if remaining == 0 { missing } else { drawn.min(missing) };
            let first = self.comments.len();
            for _ in 0..number {
                self.comment_below(first);
            }
        }
    }

    /// A comment on the last post, or on one of the comments from `first` on, which are below it.
    fn comment_below(&mut self, first: usize) {
        let siblings = self.comments.len() - first;
        let parent = match siblings == 0 || self.dice.chance(40) {
            true => self.posts[self.posts.len() - 1].id,
            false => self.comments[first + self.dice.index(siblings)].id,
        };
        let comment = self.submission(Some(parent));
        self.comments.push(comment);
    }

    fn submission(&mut self, parent: Option<u64>) -> Submission {
        let id = self.next_id;
        self.next_id += 1;
        let author = if self.dice.chance(70) { self.sociable() } else { self.anybody() };
        let longest = if parent.is_some() { 12 } else { 25 };
        Submission { id, author, parent, words: self.dice.range(1, longest) as usize }
    }

    fn anybody(&mut self) -> u32 {
        self.dice.range(1, i64::from(self.persons)) as u32
    }

    /// Somebody, the likelier the more friends there are.
    fn sociable(&mut self) -> u32 {
        if self.friendships.all.is_empty() {
            return self.anybody();
        }
        let (a, b) = *self.dice.pick(&self.friendships.all);
        if self.dice.chance(50) {
            a
        } else {
            b
        }
    }

    // ---- what happens ------------------------------------------------------------------------

    pub fn post(&mut self) -> &Submission {
        let post = self.submission(None);
        self.posts.push(post);
        &self.posts[self.posts.len() - 1]
    }

    /// On a post as often as on a comment.
    pub fn comment(&mut self) -> &Submission {
        let parent = match self.dice.chance(50) {
            true => self.dice.pick(&self.posts).id,
            false => self.dice.pick(&self.comments).id,
        };
        let comment = self.submission(Some(parent));
        self.comments.push(comment);
        &self.comments[self.comments.len() - 1]
    }

    /// One more friendship, mostly with a friend of a friend; `None` if it is there already.
    pub fn befriend(&mut self) -> Option<(u32, u32)> {
        let person = if self.dice.chance(65) { self.sociable() } else { self.anybody() };
        let other = match self.friends[person as usize].is_empty() || self.dice.chance(25) {
            true => self.sociable(),
            false => {
                let friend = *self.dice.pick(&self.friends[person as usize]);
                *self.dice.pick(&self.friends[friend as usize])
            }
        };
        let pair = (person.min(other), person.max(other));
        if person == other || !self.friendships.insert(pair) {
            return None;
        }
        self.friends[person as usize].push(other);
        self.friends[other as usize].push(person);
        Some(pair)
    }

    pub fn unfriend(&mut self) -> Option<(u32, u32)> {
        let (a, b) = self.friendships.take_any(&mut self.dice)?;
        self.friends[a as usize].retain(|friend| *friend != b);
        self.friends[b as usize].retain(|friend| *friend != a);
        Some((a, b))
    }

    /// One more like, mostly of a comment that has some, by a friend of one who likes it.
    pub fn like(&mut self) -> Option<(u32, u64)> {
        let (comment, known) = match self.likes.all.is_empty() || self.dice.chance(20) {
            true => {
                let comment = self.dice.pick(&self.comments);
                (comment.id, comment.author)
            }
            false => {
                let (person, comment) = *self.dice.pick(&self.likes.all);
                (comment, person)
            }
        };
        let person = match self.friends[known as usize].is_empty() {
            true => self.anybody(),
            false => *self.dice.pick(&self.friends[known as usize]),
        };
        self.likes.insert((person, comment)).then_some((person, comment))
    }

    pub fn unlike(&mut self) -> Option<(u32, u64)> {
        self.likes.take_any(&mut self.dice)
    }

    /// A comment finds its public: a share of its author's friends, which is small as a rule, and others.
    fn like_by_many(&mut self, most: usize) {
        let comment = self.dice.pick(&self.comments);
        let (id, mut public) = (comment.id, self.friends[comment.author as usize].clone());
        if public.is_empty() {
            public.push(self.anybody());
        }
        let share = (self.dice.range(1, 1000) as f64 / 1000.0).powf(2.5);
        let number = (share * public.len() as f64).ceil() as usize;
        for _ in 0..number {
            if self.likes.all.len() < most {
                let friend = public.swap_remove(self.dice.index(public.len()));
                let person = if self.dice.chance(30) { self.anybody() } else { friend };
                self.likes.insert((person, id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Median, 90 %, greatest.
    fn spread(counts: impl IntoIterator<Item = usize>) -> [usize; 3] {
        let mut counts: Vec<usize> = counts.into_iter().collect();
        counts.sort_unstable();
        let at = |share: f64| counts[(share * counts.len() as f64) as usize];
        [at(0.5), at(0.9), counts[counts.len() - 1]]
    }

    fn component(network: &Network, members: &mut HashSet<u32>) -> usize {
        let Some(first) = members.iter().copied().min() else { return 0 };
        members.remove(&first);
        let (mut reached, mut size) = (vec![first], 0);
        while let Some(person) = reached.pop() {
            size += 1;
            let found = network.friends[person as usize].iter();
            reached.extend(found.filter(|friend| members.remove(friend)));
        }
        size
    }

    #[test]
    fn the_network_is_as_skewed_as_the_contests() {
        let network = Network::new(SIZES[8], 1);
        let mut publics: HashMap<u64, HashSet<u32>> = HashMap::new();
        for (person, comment) in &network.likes.all {
            publics.entry(*comment).or_default().insert(*person);
        }
        let friends = spread(network.friends.iter().map(Vec::len).filter(|number| *number > 0));
        let likes = spread(publics.values().map(HashSet::len));
        let mut components = Vec::new();
        for members in publics.values_mut() {
            while !members.is_empty() {
                components.push(component(&network, members));
            }
        }
        let components = spread(components);
        let found = [friends, likes, components];
        println!("{} comments are liked, {found:?}", publics.len());
        let contest = [[8, 34, 226], [2, 38, 226], [1, 3, 195]];
        for (found, contest) in found.into_iter().zip(contest) {
            for (found, contest) in found.into_iter().zip(contest) {
                let is_near = found <= 2 * contest + 1 && contest <= 2 * found + 1;
                assert!(is_near, "{found} where the contest has {contest}");
            }
        }
        assert!((1300..5300).contains(&publics.len()), "{} comments are liked", publics.len());
    }

    #[test]
    fn sizes_are_the_contests() {
        for sizes in &SIZES[..6] {
            let network = Network::new(*sizes, 1);
            assert_eq!(network.posts.len(), sizes.posts);
            assert_eq!(network.comments.len(), sizes.comments);
            assert_eq!(network.likes.all.len(), sizes.likes);
            assert_eq!(network.friendships.all.len(), sizes.friendships);
        }
    }
}
