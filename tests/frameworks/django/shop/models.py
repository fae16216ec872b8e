from django.db import models


class Sale(models.Model):
    shop = models.TextField()
    amount = models.DecimalField(max_digits=14, decimal_places=2)


class Turnover(models.Model):
    """What each shop has sold, which pg_eddy keeps up to date."""

    shop = models.TextField(primary_key=True)
    amount = models.DecimalField(max_digits=20, decimal_places=2)
    sales = models.BigIntegerField()
    largest = models.DecimalField(max_digits=14, decimal_places=2)

    class Meta:
        managed = False
        db_table = "turnover"
