-- Global sales opportunity
-- churn customer WHERE c_acctbal > 5000 AND c_custkey NOT IN (SELECT o_custkey FROM orders)
--     AND c_nationkey IN (3, 7, 8, 13, 19, 20, 21)
-- churn orders WHERE o_custkey IN (SELECT c_custkey FROM customer WHERE c_acctbal > 5000)
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
FROM (SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal
      FROM customer
      WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
        AND c_acctbal > (
            SELECT avg(c_acctbal)
            FROM customer
            WHERE c_acctbal > 0.00
              AND substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17'))
        AND NOT EXISTS (
            SELECT *
            FROM orders
            WHERE o_custkey = c_custkey)) AS custsale
GROUP BY cntrycode
ORDER BY cntrycode
