-- Potential part promotion
-- churn supplier WHERE s_nationkey = 3
-- churn partsupp WHERE ps_suppkey IN (SELECT s_suppkey FROM supplier WHERE s_nationkey = 3)
--     AND ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
-- churn part WHERE p_name LIKE 'forest%' AND p_partkey IN (
--     SELECT ps_partkey FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey WHERE s_nationkey = 3)
-- churn lineitem WHERE l_suppkey IN (SELECT s_suppkey FROM supplier WHERE s_nationkey = 3)
--     AND l_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
SELECT s_name, s_address
FROM supplier, nation
WHERE s_suppkey IN (
      SELECT ps_suppkey
      FROM partsupp
      WHERE ps_partkey IN (
            SELECT p_partkey
            FROM part
            WHERE p_name LIKE 'forest%')
        AND ps_availqty > (
            SELECT 0.5 * sum(l_quantity)
            FROM lineitem
            WHERE l_partkey = ps_partkey
              AND l_suppkey = ps_suppkey
              AND l_shipdate >= date '1994-01-01'
              AND l_shipdate < date '1994-01-01' + interval '1' year))
  AND s_nationkey = n_nationkey
  AND n_name = 'CANADA'
ORDER BY s_name
