-- Small-quantity-order revenue
-- churn part WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX'
-- churn lineitem WHERE l_quantity < 10 AND l_partkey IN (
--     SELECT p_partkey FROM part WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX')
SELECT sum(l_extendedprice) / 7.0 AS avg_yearly
FROM lineitem, part
WHERE p_partkey = l_partkey
  AND p_brand = 'Brand#23'
  AND p_container = 'MED BOX'
  AND l_quantity < (
      SELECT 0.2 * avg(l_quantity)
      FROM lineitem
      WHERE l_partkey = p_partkey)
