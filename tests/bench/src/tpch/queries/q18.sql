-- Large volume customer
-- churn lineitem WHERE l_orderkey IN (SELECT o_orderkey FROM q18)
-- churn orders WHERE o_orderkey IN (SELECT o_orderkey FROM q18)
-- churn customer WHERE c_custkey IN (SELECT c_custkey FROM q18)
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
FROM customer, orders, lineitem
WHERE o_orderkey IN (
      SELECT l_orderkey
      FROM lineitem
      GROUP BY l_orderkey
      HAVING sum(l_quantity) > 300)
  AND c_custkey = o_custkey
  AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate, c_name, c_custkey, o_orderkey, quantity
LIMIT 100
