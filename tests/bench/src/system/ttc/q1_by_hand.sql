-- Each comment with its post, and each post with its score; no comment is ever deleted.
CREATE TABLE thread AS
    WITH RECURSIVE t(post, comment) AS (
        SELECT p.id, c.id FROM post p JOIN comment c ON c.parent = p.id
        UNION ALL
        SELECT t.post, c.id FROM t JOIN comment c ON c.parent = t.comment
    )
    SELECT post, comment FROM t;
ALTER TABLE thread ADD PRIMARY KEY (comment);
CREATE TABLE by_hand AS
    SELECT p.id, p.written, coalesce(s.score, 0) AS score
    FROM post p
    LEFT JOIN (
        SELECT t.post, 10 * count(DISTINCT t.comment) + count(l.comment) AS score
        FROM thread t
        LEFT JOIN likes l ON l.comment = t.comment
        GROUP BY t.post
    ) s ON s.post = p.id;
ALTER TABLE by_hand ADD PRIMARY KEY (id);
CREATE INDEX ON by_hand (score, written);

CREATE FUNCTION add_post() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO by_hand (id, written, score) VALUES (NEW.id, NEW.written, 0);
    RETURN NULL;
END $$;
CREATE FUNCTION add_comment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    root bigint := coalesce((SELECT post FROM thread WHERE comment = NEW.parent), NEW.parent);
BEGIN
    INSERT INTO thread (post, comment) VALUES (root, NEW.id);
    UPDATE by_hand SET score = score + 10 WHERE id = root;
    RETURN NULL;
END $$;
CREATE FUNCTION change_like() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE by_hand SET score = score + CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END
    WHERE id = (SELECT post FROM thread WHERE comment = coalesce(NEW.comment, OLD.comment));
    RETURN NULL;
END $$;
CREATE TRIGGER by_hand AFTER INSERT ON post FOR EACH ROW EXECUTE FUNCTION add_post();
CREATE TRIGGER by_hand AFTER INSERT ON comment FOR EACH ROW EXECUTE FUNCTION add_comment();
CREATE TRIGGER by_hand AFTER INSERT OR DELETE ON likes FOR EACH ROW EXECUTE FUNCTION change_like();
