from decimal import Decimal

from django.db import connection, transaction
from django.db.utils import Error
from django.test import TestCase, TransactionTestCase

from shop.models import Sale, Turnover


class InTransaction(TestCase):
    def test_a_transaction_sees_what_it_has_changed(self):
        Sale.objects.create(shop="north", amount=10)
        Sale.objects.create(shop="north", amount=5)
        self.assertEqual(Turnover.objects.get(pk="north").amount, Decimal("15.00"))
        self.assertEqual(Turnover.objects.get(pk="north").largest, Decimal("10.00"))
        Sale.objects.all().delete()
        self.assertFalse(Turnover.objects.exists())


class Committed(TransactionTestCase):
    def test_what_is_committed_is_in_the_view(self):
        Sale.objects.bulk_create(Sale(shop=f"shop {n % 3}", amount=n) for n in range(30))
        with transaction.atomic():
            Sale.objects.filter(amount__lt=10).delete()
        sold = list(Turnover.objects.order_by("shop").values_list("shop", "sales"))
        self.assertEqual(sold, [("shop 0", 6), ("shop 1", 7), ("shop 2", 7)])
        with connection.cursor() as cursor:
            cursor.execute("SELECT state FROM eddy.views WHERE relation = 'turnover'::regclass")
            self.assertEqual(cursor.fetchone(), ("live",))

    def test_nobody_writes_the_view(self):
        with self.assertRaises(Error):
            Turnover.objects.create(shop="mine", amount=1, sales=1, largest=1)
