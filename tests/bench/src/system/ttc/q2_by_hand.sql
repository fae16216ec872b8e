-- Each comment with its score, which is computed anew when its likes, or ties among those who like
-- it, change: the components are filled one by one, from any of the persons left.
CREATE FUNCTION score_of(touched bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    remaining bigint[] := ARRAY(SELECT person FROM likes WHERE comment = touched);
    reached bigint[];
    size bigint;
    score bigint := 0;
BEGIN
    WHILE cardinality(remaining) > 0 LOOP
        reached := remaining[1:1];
        size := 0;
        WHILE cardinality(reached) > 0 LOOP
            size := size + cardinality(reached);
            remaining := ARRAY(SELECT unnest(remaining) EXCEPT SELECT unnest(reached));
            reached := ARRAY(
                SELECT b FROM friend WHERE a = ANY (reached)
                INTERSECT
                SELECT unnest(remaining)
            );
        END LOOP;
        score := score + size * size;
    END LOOP;
    RETURN score;
END $$;
CREATE TABLE by_hand AS SELECT id, written, score_of(id) AS score FROM comment;
ALTER TABLE by_hand ADD PRIMARY KEY (id);
CREATE INDEX ON by_hand (score, written);

CREATE FUNCTION add_comment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO by_hand (id, written, score) VALUES (NEW.id, NEW.written, 0);
    RETURN NULL;
END $$;
CREATE FUNCTION change_like() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    touched bigint := coalesce(NEW.comment, OLD.comment);
BEGIN
    UPDATE by_hand SET score = score_of(touched) WHERE id = touched;
    RETURN NULL;
END $$;
-- Once for both sides of a friendship, which come and go in one statement.
CREATE FUNCTION change_friend() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    first bigint := coalesce(NEW.a, OLD.a);
    second bigint := coalesce(NEW.b, OLD.b);
BEGIN
    IF first < second THEN
        UPDATE by_hand SET score = score_of(id) WHERE id IN (
            SELECT x.comment
            FROM likes x
            JOIN likes y ON y.comment = x.comment
            WHERE x.person = first AND y.person = second
        );
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER by_hand AFTER INSERT ON comment FOR EACH ROW EXECUTE FUNCTION add_comment();
CREATE TRIGGER by_hand AFTER INSERT OR DELETE ON likes FOR EACH ROW EXECUTE FUNCTION change_like();
CREATE TRIGGER by_hand AFTER INSERT OR DELETE ON friend FOR EACH ROW EXECUTE FUNCTION change_friend();
