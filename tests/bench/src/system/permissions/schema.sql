-- A principal is a person or a group; both may be in groups, and rules may be about both.
CREATE TABLE principal (id int PRIMARY KEY, name text NOT NULL, is_group boolean NOT NULL);
CREATE TABLE member (member int NOT NULL, grp int NOT NULL, PRIMARY KEY (member, grp));
CREATE TABLE folder (id int PRIMARY KEY, parent int, name text NOT NULL);
CREATE TABLE file (id int PRIMARY KEY, folder int NOT NULL, name text NOT NULL);
-- Of a file, or of a folder with all that is in it.
CREATE TABLE rule (
    id int PRIMARY KEY,
    principal int NOT NULL,
    folder int,
    file int,
    allows boolean NOT NULL,
    CHECK (num_nonnulls(folder, file) = 1)
);
-- Pairs that somebody wants to be told of.
CREATE TABLE watched (person int NOT NULL, file int NOT NULL, PRIMARY KEY (person, file));
CREATE INDEX ON member (grp);
CREATE INDEX ON folder (parent);
CREATE INDEX ON file (folder);
CREATE INDEX ON rule (principal);
CREATE INDEX ON rule (folder);
CREATE INDEX ON rule (file);
