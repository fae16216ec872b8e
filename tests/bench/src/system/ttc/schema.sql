-- Posts and comments share one sequence of numbers; a comment's parent is either.
CREATE TABLE person (id bigint PRIMARY KEY, name text NOT NULL);
CREATE TABLE post (
    id bigint PRIMARY KEY,
    written timestamptz NOT NULL,
    author bigint NOT NULL,
    content text NOT NULL
);
CREATE TABLE comment (
    id bigint PRIMARY KEY,
    written timestamptz NOT NULL,
    author bigint NOT NULL,
    parent bigint NOT NULL,
    content text NOT NULL
);
CREATE TABLE likes (person bigint NOT NULL, comment bigint NOT NULL, PRIMARY KEY (person, comment));
-- Each friendship is there from both sides.
CREATE TABLE friend (a bigint NOT NULL, b bigint NOT NULL, PRIMARY KEY (a, b));
CREATE INDEX ON comment (parent);
CREATE INDEX ON likes (comment);
